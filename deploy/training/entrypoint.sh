#!/bin/sh
# Trains the model plugin that the environment names.
#
#   JOB_ID        said at the start
#   MODEL_PLUGIN  the plugin: module:Class, or a name that an installed package registers
#   CONFIG        a JSON object, handed to the plugin
#   DATASET       handed to the plugin's loaders: a folder, or whatever the plugin reads
#   CODE          a folder whose modules can be imported; the working folder if not given
#
# With arguments it runs them instead, so that the image can be looked into.
set -eu

if [ "$#" -gt 0 ]; then
    exec "$@"
fi
: "${MODEL_PLUGIN:?MODEL_PLUGIN is not set; it names the model plugin, as module:Class}"
python=$(command -v python || command -v python3) || {
    echo "the image has no Python" >&2
    exit 127
}
cd "${CODE:-.}"
exec "$python" -m crucible.train.run

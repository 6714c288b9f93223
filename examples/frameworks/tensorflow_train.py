"""A Keras training over MultiWorkerMirroredStrategy. The chief saves after every epoch; a new attempt goes on there."""

import hashlib
import json
import os
import time

# Keras 3 cannot `fit` under this strategy; the older one can.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES") or "-1"

import numpy as np
import tensorflow as tf

EPOCHS = int(os.environ.get("EPOCHS", "3"))
EPOCH_SECONDS = float(os.environ.get("EPOCH_SECONDS", "0"))  # an epoch of a real model takes its time
BATCH = 48


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        net = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="tanh"), tf.keras.layers.Dense(1)])
        net.build((None, 8))
        net.compile(tf.keras.optimizers.SGD(0.05), "mse")
    again = tf.keras.callbacks.BackupAndRestore(os.path.join(os.environ.get("CRUCIBLE_KEEP", "."), "backup"))
    slow = tf.keras.callbacks.LambdaCallback(on_epoch_end=told)
    print(f"worker {task['index']} of {strategy.num_replicas_in_sync} begins", flush=True)
    said = net.fit(data(), epochs=EPOCHS, steps_per_epoch=10, verbose=0, callbacks=[again, slow])
    if task["index"] == 0:
        content = b"".join(part.tobytes() for part in net.get_weights())
        loss = said.history["loss"][-1]
        print(f"final loss {loss:.8f} weights {hashlib.sha256(content).hexdigest()[:16]}", flush=True)


def told(epoch: int, logs: dict[str, float]) -> None:
    print(f"epoch {epoch + 1} loss {logs['loss']:.6f}", flush=True)
    time.sleep(EPOCH_SECONDS)


def data() -> tf.data.Dataset:
    random = np.random.default_rng(7)
    x = random.normal(size=(480, 8)).astype("float32")
    y = np.sin(x.sum(axis=1, keepdims=True)).astype("float32")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH).with_options(options)


if __name__ == "__main__":
    main()

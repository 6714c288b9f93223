"""Google Cloud Storage on loopback: the XML API as unmodified clients speak it, with signatures, conditions and
generations that are checked. Objects are files in the Lab's folder, and gone with it."""

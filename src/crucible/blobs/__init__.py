"""What is kept as bytes under a name: packages of user code on a folder, and objects on a folder or in a cloud."""

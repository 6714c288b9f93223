"""Own hosts as a seller: computers that are reached over SSH, at no price. A machine is a folder and an agent there."""

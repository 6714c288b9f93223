"""What people call a GPU, from what its maker calls it."""

# Words of the maker that are not part of the model.
BRANDS = frozenset({"NVIDIA", "TESLA", "GEFORCE", "QUADRO", "GRAPHICS", "DEVICE"})
# Families whose number alone means nothing: "RTX 4090".
FAMILIES = frozenset({"RTX", "GTX", "TITAN"})


def model_name(full: str) -> str:
    """The name people use: "NVIDIA A100-SXM4-80GB" is A100, "NVIDIA GeForce RTX 4090" is RTX4090."""
    words = [word for word in full.replace("-", " ").split() if word.upper() not in BRANDS]
    if len(words) > 1 and words[0].upper() in FAMILIES:
        return (words[0] + words[1]).upper()
    return words[0].upper() if words else full

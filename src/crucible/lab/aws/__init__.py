"""Amazon's protocols over the Lab's world: EC2, STS, Service Quotas, Pricing and SSM, as every
client of theirs speaks them."""

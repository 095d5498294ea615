"""A recipe whose source has no published checksum: the site states the checksum of its copy."""

from spack.package import *


def is_sha256(text):
    """Whether `text` is a SHA-256 in lower-case hexadecimal digits, or no checksum."""
    return text == "none" or (len(text) == 64 and set(text) <= set("0123456789abcdef"))


class SiteCopy(PackageBase):
    """A package with the variant ``sha256``, the checksum of all its versions."""

    variant("sha256", default="none", values=is_sha256, description="SHA-256 of the site's copy")

    def __init__(self, spec):
        super().__init__(spec)
        stated = spec.variants.get("sha256")
        if stated is not None and stated.value != "none":
            self.versions = {
                version: {**arguments, "sha256": stated.value}
                for version, arguments in type(self).versions.items()
            }

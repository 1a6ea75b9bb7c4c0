"""What can go wrong with an image or its signature. `reason` is a CamelCase word that a condition can carry."""

from __future__ import annotations


class OciError(Exception):
    """Base. `message` is for a person, names the image and the way out."""

    reason = "ImageError"
    layer = ""
    """The digest of the layer that it is about, if it is about one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidReference(OciError, ValueError):
    """The text names no image."""

    reason = "InvalidImageReference"


class ImageNotFound(OciError):
    """The registry or layout is there, the image or blob is not."""

    reason = "ImageNotFound"


class FileNotFound(ImageNotFound):
    """The image is there, and has no such file."""

    reason = "FileNotFound"


class BadImage(OciError):
    """The bytes are not what they claim: a digest, size, type or path does not hold. Trying again does not help."""

    reason = "BadImage"


class BeyondLimits(BadImage):
    """The image may be in order, but is more than we read, or of a kind that we cannot: what is in it is not known."""

    reason = "ImageBeyondLimits"


class Unauthorized(OciError):
    """The registry wants other credentials than it was given."""

    reason = "RegistryUnauthorized"


class BadCredentials(OciError):
    """A credential file or helper that was to be asked cannot be used. The message never has what is in it."""

    reason = "BadCredentials"


class BadMirrors(OciError):
    """What is said about mirrors cannot be used."""

    reason = "BadMirrors"


class Unreachable(OciError):
    """The registry or store did not answer, or answered with a server error: trying again may help."""

    reason = "RegistryUnreachable"


class CannotWrite(OciError):
    """An image could not be written (disk full, no permission); nothing half-written was left."""

    reason = "CannotWrite"


class WouldReplace(OciError):
    """The name is another image's, and nobody said that it may be taken away."""

    reason = "WouldReplace"


class Unverified(OciError):
    """No valid signature for the digest. `details` says what each store and keyring answered."""

    reason = "ImageVerificationFailed"

    def __init__(self, message: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.details = details

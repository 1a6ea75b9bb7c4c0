"""The errors of images and signatures. `reason` is a CamelCase word that a condition can carry."""

from __future__ import annotations

from kubekit.lang.text import cut, printable

MAX_MESSAGE = 4096  # bytes of a message, which may quote what a registry sent


class OciError(Exception):
    """Base of the errors. `message` is for a person, names the image and the remedy; a long one is cut.

    Names in an image may be any bytes: those that UTF-8 cannot carry, and control characters, are escaped, because a
    message becomes part of a status.
    """

    reason = "ImageError"
    layer = ""
    """The digest of the layer that the error is about, if any."""

    def __init__(self, message: str) -> None:
        message = cut(printable(message), MAX_MESSAGE)
        super().__init__(message)
        self.message = message


class InvalidReference(OciError, ValueError):
    """The text is not an image reference."""

    reason = "InvalidImageReference"


class ImageNotFound(OciError):
    """The registry or layout exists, but the image or blob does not."""

    reason = "ImageNotFound"


class FileNotFound(ImageNotFound):
    """The image exists, but has no such file."""

    reason = "FileNotFound"


class BadImage(OciError):
    """The bytes do not match a digest, size, type or path that they claim; a retry does not help."""

    reason = "BadImage"


class BeyondLimits(BadImage):
    """The image exceeds a limit, or is of a kind that cannot be read; it may be valid, but its content is not known."""

    reason = "ImageBeyondLimits"


class Unauthorized(OciError):
    """The registry requires other credentials than it was given."""

    reason = "RegistryUnauthorized"


class AddressNotAllowed(Unauthorized):
    """The registry is at an address where only registries that an administrator listed may be; it was not asked."""

    reason = "RegistryNotAllowed"


class BadCredentials(OciError):
    """A credential file or helper cannot be used. The message never has its content."""

    reason = "BadCredentials"


class BadMirrors(OciError):
    """The configuration of mirrors cannot be used."""

    reason = "BadMirrors"


class Unreachable(OciError):
    """The registry or store did not answer, or answered with a server error: a retry may help."""

    reason = "RegistryUnreachable"


class Untrusted(Unreachable):
    """The registry speaks TLS, and its certificate is not valid for it here."""

    reason = "RegistryCertificateInvalid"


class CannotWrite(OciError):
    """An image could not be written (disk full, no permission); nothing incomplete was left."""

    reason = "CannotWrite"


class NameInUse(OciError):
    """The name belongs to another image, and replacing it was not requested."""

    reason = "WouldReplace"


class Unverified(OciError):
    """The digest has no valid signature. `details` has the answer of each store and keyring."""

    reason = "ImageVerificationFailed"

    def __init__(self, message: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.details = details

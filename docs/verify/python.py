# Usage: python3 python.py SECRET SIGNATURE_HEADER < raw-body
import binascii
import hashlib
import hmac
import sys


# The key is the secret's 64 characters as they are shown: do not decode them from hex.
def is_valid(secret: str, signature_header: str | None, raw_body: bytes) -> bool:
    if not (signature_header or "").startswith("sha256="):
        return False
    try:
        given = binascii.unhexlify(signature_header[len("sha256="):])
    except ValueError:
        return False
    expected = hmac.new(secret.encode("utf-8"), raw_body, hashlib.sha256).digest()
    return len(given) == len(expected) and hmac.compare_digest(given, expected)


if __name__ == "__main__":
    secret, signature_header = sys.argv[1:3]
    valid = is_valid(secret, signature_header, sys.stdin.buffer.read())
    print("valid" if valid else "invalid")
    sys.exit(0 if valid else 1)

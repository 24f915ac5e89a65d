/** A delivery that can be recomputed; a test does. */
export const SECRET = '6f0b8f0a3d5c4e219a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f'
export const BODY =
  '{"event":"comment:created","data":{"id":"com_1"},"timestamp":1777885331000,"traceId":"6c42567ab0f8157384bcb87bd270b3cb","triggeredBy":null}'
export const SIGNATURE = 'sha256=238ec1e9ff5c683eddf7f46183fd4032b7f131923e63c77b85a5ced67e604b0e'
export const EVENT_ID = '0198f6a4-51c2-7b3e-9d70-2f4c8a1b6e35'

// The programs of docs/verify: `npm run check:docs -- --write` brings them up to date.
// verify:start

export const VERIFY_SAMPLES = [
  {
    language: 'Node.js',
    program: `// Usage: node node.mjs SECRET SIGNATURE_HEADER < raw-body
import { createHmac, timingSafeEqual } from 'node:crypto'
import { buffer } from 'node:stream/consumers'

// The key is the secret's 64 characters as they are shown: do not decode them from hex.
function isValid(secret, signatureHeader, rawBody) {
  const match = /^sha256=((?:[0-9a-fA-F]{2})+)$/.exec(signatureHeader ?? '')
  if (!match) return false
  const given = Buffer.from(match[1], 'hex')
  const expected = createHmac('sha256', secret).update(rawBody).digest()
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const [secret, signatureHeader] = process.argv.slice(2)
const valid = isValid(secret, signatureHeader, await buffer(process.stdin))
console.log(valid ? 'valid' : 'invalid')
process.exitCode = valid ? 0 : 1`,
  },
  {
    language: 'Python',
    program: `# Usage: python3 python.py SECRET SIGNATURE_HEADER < raw-body
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
    sys.exit(0 if valid else 1)`,
  },
  {
    language: 'Go',
    program: `// Usage: go run main.go SECRET SIGNATURE_HEADER < raw-body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// The key is the secret's 64 characters as they are shown: do not decode them from hex.
func isValid(secret, signatureHeader string, rawBody []byte) bool {
	digits, found := strings.CutPrefix(signatureHeader, "sha256=")
	if !found {
		return false
	}
	given, err := hex.DecodeString(digits)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(rawBody)
	expected := mac.Sum(nil)
	return len(given) == len(expected) && hmac.Equal(given, expected)
}

func main() {
	rawBody, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	if !isValid(os.Args[1], os.Args[2], rawBody) {
		fmt.Println("invalid")
		os.Exit(1)
	}
	fmt.Println("valid")
}`,
  },
  {
    language: 'Java',
    program: `// Usage: java Verify.java SECRET SIGNATURE_HEADER < raw-body      (Java 17 or later)
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
    // The key is the secret's 64 characters as they are shown: do not decode them from hex.
    static boolean isValid(String secret, String signatureHeader, byte[] rawBody) throws GeneralSecurityException {
        if (signatureHeader == null || !signatureHeader.startsWith("sha256=")) {
            return false;
        }
        byte[] given;
        try {
            given = HexFormat.of().parseHex(signatureHeader.substring("sha256=".length()));
        } catch (IllegalArgumentException malformed) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] expected = mac.doFinal(rawBody);
        return given.length == expected.length && MessageDigest.isEqual(given, expected);
    }

    public static void main(String[] args) throws Exception {
        boolean valid = isValid(args[0], args[1], System.in.readAllBytes());
        System.out.println(valid ? "valid" : "invalid");
        System.exit(valid ? 0 : 1);
    }
}`,
  },
]

// verify:end

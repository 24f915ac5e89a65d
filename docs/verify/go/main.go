// Usage: go run main.go SECRET SIGNATURE_HEADER < raw-body
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
}

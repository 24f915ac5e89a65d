// Usage: java Verify.java SECRET SIGNATURE_HEADER < raw-body      (Java 17 or later)
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
}

// Reads Kubernetes manifests from standard input, strictly: an unknown field, or a kind that Kubernetes does not have, is
// an error. Prints the kind and name of each, and ends with 1 and the reasons when one is not valid. Kinds of other
// groups (*.coreos.com) are passed over.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	isValid := true
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text := string(document)
		if !strings.Contains(text, "kind:") || strings.Contains(text, ".coreos.com/") {
			continue
		}
		var object runtime.Object
		if object, _, err = strict.Decode(document, nil, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			isValid = false
			continue
		}
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind)
	}
	if !isValid {
		os.Exit(1)
	}
}

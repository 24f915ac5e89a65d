#!/bin/sh
# Creates the namespace with its retention and search attributes, or completes it. Harmless to repeat.
# TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE are read by the temporal command itself.
set -eu

: "${TEMPORAL_ADDRESS:?is not set}"
: "${TEMPORAL_NAMESPACE:?is not set}"
: "${TEMPORAL_RETENTION:?is not set}"

TRIES=60
PAUSE_SECONDS=2

# A server that has just started, or a namespace just made, is not known everywhere for some seconds.
retry() {
  tries_left=$TRIES
  until "$@"; do
    tries_left=$((tries_left - 1))
    if [ "$tries_left" -eq 0 ]; then
      echo "Giving up: $*" >&2
      exit 1
    fi
    sleep "$PAUSE_SECONDS"
  done
}

put_namespace() {
  if temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention "$TEMPORAL_RETENTION"
  else
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$TEMPORAL_RETENTION"
  fi
}

# What the workers set on every delivery. One that exists already is left as it is.
put_search_attributes() {
  temporal operator search-attribute create \
    --name OrganisationId --type Keyword \
    --name WebhookId --type Keyword \
    --name EventKey --type Keyword \
    --name DeliveryState --type Keyword
}

retry temporal operator cluster health
retry put_namespace
retry put_search_attributes

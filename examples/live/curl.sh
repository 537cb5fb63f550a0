#!/bin/sh
# A choice and its reward with curl. NODE is the sidecar's address, or with NODE_SOCKET its Unix socket.
set -eu
NODE=${NODE:-http://127.0.0.1:7780}

ask() { # METHOD PATH [JSON]
    curl --silent --show-error --fail-with-body ${NODE_SOCKET:+--unix-socket "$NODE_SOCKET"} \
        ${NODE_TOKEN_FILE:+--header "Authorization: Bearer $(cat "$NODE_TOKEN_FILE")"} \
        --header 'Content-Type: application/json' --request "$1" ${3:+--data "$3"} "$NODE$2"
    echo
}

choice=$(ask POST /v1/choose '{}')
ticket=$(printf '%s' "$choice" | sed 's/.*"ticket":"\([^"]*\)".*/\1/')
echo "$choice"
ask POST /v1/observe "{\"ticket\": \"$ticket\", \"reward\": 0.5}"
# The same again changes nothing: whoever is not sure whether it arrived sends it once more.
ask POST /v1/observe "{\"ticket\": \"$ticket\", \"reward\": 0.5}"
ask GET /v1/state

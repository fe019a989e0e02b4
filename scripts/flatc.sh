#!/usr/bin/env bash
# Regenerates schemas/generated/ from schemas/model.fbs with the prefix's flatc.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
exec "$root/tests/structure/schema_fresh.sh" "${SINTER_DEPS_PREFIX:-$root/build/deps}/host/bin/flatc" --fix

#!/bin/sh
# Regenerates schemas/generated/model_generated.h. Usage: schemas/generate.sh PATH/TO/flatc
set -eu
cd "$(dirname "$0")"
exec "${1:-flatc}" --cpp --scoped-enums --no-warnings -o generated model.fbs

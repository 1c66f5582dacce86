#!/bin/sh
# A command-line study of a small simulator: no Python to write but the simulator's own.
# Usage: sh run.sh FOLDER, where FOLDER is a new folder for the study.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
edrbo new coating.toml --design speed=1:9 --design dose=0.5:4 --context humidity=0:1 --direction minimize --method erbo
edrbo run coating.toml --evaluations 24 --workers 2 --timeout 60 -- python "$here/simulate.py" "{speed}" "{dose}"
edrbo recommend --json | python "$here/how_near.py"
edrbo report --out coating.html

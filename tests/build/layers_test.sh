#!/bin/sh
# A sample with one include against each rule: check_layers.cmake must name every file and line, and nothing else.
#   layers_test.sh CHECK_LAYERS_CMAKE
set -eu
check=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/core" "$folder/device/cpu/onednn" "$folder/model" "$folder/train" "$folder/extra"

printf '#include <vector>\n\n#include "core/a.h"\n' > "$folder/core/good.cpp"
printf '#include <oneapi/dnnl/dnnl.hpp>\n#include "core/a.h"\n#include "device/device.h"\n' \
  > "$folder/device/cpu/onednn/matmul.cpp"
printf '#include "toml++/toml.h"\n' > "$folder/core/toml.cpp"
cmake -DSOURCE="$folder" -P "$check" > "$folder/log" 2>&1 || { cat "$folder/log"; echo "a good tree was refused"; exit 1; }

printf '// layers\n#include "train/loop.h"\n' > "$folder/core/upwards.h"
printf '#include <dnnl.hpp>\n' > "$folder/device/cpu/vendor.cpp"
printf '#include "device/cpu/kernel.h"\n#include "near.h"\n' > "$folder/model/inside.cpp"
printf '#include <toml++/toml.h>\n' > "$folder/core/toml_again.cpp"
printf '#include <pcre2.h>\n' > "$folder/train/pattern.cpp"
printf '#include <cstdint>\n' > "$folder/extra/lost.cpp"
if cmake -DSOURCE="$folder" -P "$check" > "$folder/log" 2>&1; then
  echo "the bad sample was accepted"
  exit 1
fi
failed=0
for place in core/upwards.h:2 device/cpu/vendor.cpp:1 model/inside.cpp:1 model/inside.cpp:2 core/toml_again.cpp:1 \
             train/pattern.cpp:1 extra/lost.cpp:1; do
  grep -q "^src/$place: " "$folder/log" || { echo "not reported: $place"; failed=1; }
done
count=$(grep -c '^src/' "$folder/log")
[ "$count" -eq 7 ] || { echo "$count lines reported, 7 expected"; failed=1; }
[ "$failed" -eq 0 ] || cat "$folder/log"
exit "$failed"

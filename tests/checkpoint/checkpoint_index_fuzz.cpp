// A checkpoint folder: the first four bytes say how long index.json is, the rest is its only shard. The
// commit marker is made to match, as it would be for a folder that somebody forged. Any bytes give tensors
// that can be read, or an Error (input); the metadata describe a model or raise an Error (input).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "generate/tokenizer_files.h"
#include "model/gpt_config_json.h"
#include "tests/data/support/fuzz_folder.h"

namespace {

using namespace megalith;

void read_everything(Device& device, const CheckpointReader& reader) {
  for (const StoredTensor& tensor : reader.tensors()) {
    const Box box{{}, tensor.shape};
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    const DeviceMemory memory(device, std::max<std::size_t>(bytes, 1));
    LogicalTensor to;
    to.name = tensor.name;
    to.logical_shape = tensor.shape;
    to.local = memory.tensor(tensor.dtype, tensor.shape);
    to.pieces = {{box, box}};
    reader.read(device, {to});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  std::uint32_t length = 0;
  std::memcpy(&length, data, 4);
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const std::string_view index = text.substr(0, std::min<std::size_t>(length, text.size()));
  static const test::FuzzFolder folder;
  static const std::string place = folder / "iter_0000001";
  static const std::unique_ptr<Device> device = make_device({"reference", 1, false, 1});
  create_folders(place);
  test::FuzzFolder::write(place + "/index.json", index);
  test::FuzzFolder::write(place + "/model-00001-of-00001.safetensors", text.substr(index.size()));
  test::FuzzFolder::write(place + "/COMMITTED", hash_hex(index) + "\n");
  try {
    const CheckpointReader reader(place);
    read_everything(*device, reader);
    stored_tokenizer(place, reader.metadata());
    gpt_config_from_json(reader.metadata().value("model", nlohmann::json()), place).check();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}

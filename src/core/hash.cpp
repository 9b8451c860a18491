#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/format.h"

namespace megalith {

struct Hasher::State {
  XXH3_state_t state;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->state);
}
Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->state, bytes.data(), bytes.size());
}

std::uint64_t Hasher::value() const {
  return XXH3_64bits_digest(&state_->state);
}

std::string Hasher::hex() const {
  return format("{:016x}", value());
}

std::string hash_hex(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.hex();
}

std::string hash_hex(std::string_view text) {
  return hash_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace megalith

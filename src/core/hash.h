// Checksums of data at rest (XXH3, 64 bits). Not cryptographic: they find damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

/// Feeds bytes in pieces; hex() of the same bytes is the same however they were cut.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  std::uint64_t value() const;
  /// Sixteen hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hash of one piece, as Hasher::hex().
std::string hash_hex(std::span<const std::byte> bytes);
std::string hash_hex(std::string_view text);

}  // namespace megalith

#include "core/utf8.h"

namespace megalith {
namespace {

constexpr std::uint32_t code_point_limit = 0x110000;

}  // namespace

Utf8Sequence utf8_sequence_at(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t offset) -> std::uint32_t {
    return place + offset < text.size() ? static_cast<unsigned char>(text[place + offset]) : 0U;
  };
  const auto continues = [](std::uint32_t value) { return (value & 0xc0U) == 0x80U; };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::uint32_t second = byte(1);
  if (first < 0xc2 || first > 0xf4 || !continues(second)) return {0, 0};
  if (first < 0xe0) return {((first & 0x1fU) << 6U) | (second & 0x3fU), 2};
  const std::uint32_t third = byte(2);
  if (!continues(third)) return {0, 0};
  if (first < 0xf0) {
    const std::uint32_t code_point = ((first & 0x0fU) << 12U) | ((second & 0x3fU) << 6U) | (third & 0x3fU);
    const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
    return code_point < 0x800 || surrogate ? Utf8Sequence{0, 0} : Utf8Sequence{code_point, 3};
  }
  const std::uint32_t fourth = byte(3);
  if (!continues(fourth)) return {0, 0};
  const std::uint32_t code_point =
      ((first & 0x07U) << 18U) | ((second & 0x3fU) << 12U) | ((third & 0x3fU) << 6U) | (fourth & 0x3fU);
  const bool in_range = code_point >= 0x10000 && code_point < code_point_limit;
  return in_range ? Utf8Sequence{code_point, 4} : Utf8Sequence{0, 0};
}

bool is_utf8(std::string_view text) {
  for (std::size_t place = 0; place < text.size();) {
    const Utf8Sequence sequence = utf8_sequence_at(text, place);
    if (sequence.bytes == 0) return false;
    place += sequence.bytes;
  }
  return true;
}

}  // namespace megalith

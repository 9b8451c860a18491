#include "data/indexed_dataset.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/hash.h"

namespace megalith {
namespace {

constexpr std::string_view magic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t header_bytes = 34;

// Arrays in .idx start at any address.
template <typename T>
T load(const std::byte* address) {
  T value{};
  std::memcpy(&value, address, sizeof(T));
  return value;
}

std::int64_t stored_token(TokenStorage storage, const std::byte* address) {
  switch (storage) {
    case TokenStorage::uint8:
      return load<std::uint8_t>(address);
    case TokenStorage::int8:
      return load<std::int8_t>(address);
    case TokenStorage::int16:
      return load<std::int16_t>(address);
    case TokenStorage::int32:
      return load<std::int32_t>(address);
    case TokenStorage::int64:
      return load<std::int64_t>(address);
    case TokenStorage::uint16:
      return load<std::uint16_t>(address);
  }
  return -1;
}

TokenStorage storage_from_code(const std::string& file, std::uint8_t code) {
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 8:
      return static_cast<TokenStorage>(code);
    case 6:
    case 7:
      fail(ErrorKind::input, file, "holds floating-point values (dtype code {}), not tokens", int{code});
    default:
      fail(ErrorKind::input, file, "has the unknown dtype code {} at byte 17; known are 1 to 5 and 8",
           int{code});
  }
}

}  // namespace

std::int64_t size_of(TokenStorage storage) {
  switch (storage) {
    case TokenStorage::uint8:
    case TokenStorage::int8:
      return 1;
    case TokenStorage::int16:
    case TokenStorage::uint16:
      return 2;
    case TokenStorage::int32:
      return 4;
    case TokenStorage::int64:
      return 8;
  }
  return 0;
}

std::string_view name_of(TokenStorage storage) {
  switch (storage) {
    case TokenStorage::uint8:
      return "uint8";
    case TokenStorage::int8:
      return "int8";
    case TokenStorage::int16:
      return "int16";
    case TokenStorage::int32:
      return "int32";
    case TokenStorage::int64:
      return "int64";
    case TokenStorage::uint16:
      return "uint16";
  }
  return "unknown";
}

TokenStorage storage_for_vocabulary(std::int64_t vocab_size) {
  return vocab_size < 65500 ? TokenStorage::uint16 : TokenStorage::int32;
}

std::string dataset_prefix(std::string_view path) {
  if (path.ends_with(".bin") || path.ends_with(".idx")) path.remove_suffix(4);
  return std::string(path);
}

IndexedDataset::IndexedDataset(std::string_view path)
    : prefix_(dataset_prefix(path)), idx_(prefix_ + ".idx"), bin_(prefix_ + ".bin") {
  const std::string file = prefix_ + ".idx";
  const std::span<const std::byte> bytes = idx_.bytes();
  if (bytes.size() < header_bytes) {
    fail(ErrorKind::input, file,
         "is {} bytes long, shorter than the header of {}; it is truncated or no index file", bytes.size(),
         header_bytes);
  }
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
    fail(ErrorKind::input, file, "does not begin with MMIDIDX; it is no index file of Megatron-LM's format");
  }
  const auto version = load<std::uint64_t>(bytes.data() + 9);
  if (version != 1) fail(ErrorKind::input, file, "has format version {}; only version 1 is known", version);
  storage_ = storage_from_code(file, load<std::uint8_t>(bytes.data() + 17));
  const auto sequences = load<std::uint64_t>(bytes.data() + 18);
  const auto entries = load<std::uint64_t>(bytes.data() + 26);

  const std::uint64_t room = bytes.size() - header_bytes;
  if (sequences > room / 12) {
    fail(ErrorKind::input, file,
         "announces {} sequences (12 bytes each), but only {} bytes follow the header; truncated?", sequences,
         room);
  }
  const std::uint64_t rest = room - sequences * 12;
  if (entries > rest / 8) {
    fail(
        ErrorKind::input, file,
        "announces {} document index entries (8 bytes each), but only {} bytes are left for them; truncated?",
        entries, rest);
  }
  if (entries == 0)
    fail(ErrorKind::input, file, "has an empty document index; it always begins with an entry 0");
  const std::uint64_t left = rest - entries * 8;
  if (left != 0 && left != sequences) {
    fail(ErrorKind::input, file,
         "has {} bytes after the document index; expected none, or {} (a mode for each sequence)", left,
         sequences);
  }
  sequences_ = static_cast<std::int64_t>(sequences);
  documents_ = static_cast<std::int64_t>(entries) - 1;
  lengths_ = bytes.data() + header_bytes;
  offsets_ = lengths_ + sequences * 4;
  document_index_ = offsets_ + sequences * 8;
  if (left != 0) modes_ = document_index_ + entries * 8;
}

std::int64_t IndexedDataset::length(std::int64_t sequence) const {
  MEGALITH_ASSERT(sequence >= 0 && sequence < sequences_, format("sequence {} of {}", sequence, sequences_));
  const auto value = load<std::int32_t>(lengths_ + sequence * 4);
  if (value < 0) {
    fail(ErrorKind::input, prefix_ + ".idx", "sequence {} has the negative length {}; the file is damaged",
         sequence, value);
  }
  return value;
}

std::int64_t IndexedDataset::offset(std::int64_t sequence) const {
  MEGALITH_ASSERT(sequence >= 0 && sequence < sequences_, format("sequence {} of {}", sequence, sequences_));
  return load<std::int64_t>(offsets_ + sequence * 8);
}

std::int64_t IndexedDataset::document_start(std::int64_t index) const {
  MEGALITH_ASSERT(index >= 0 && index <= documents_, format("document {} of {}", index, documents_));
  return load<std::int64_t>(document_index_ + index * 8);
}

std::int8_t IndexedDataset::mode(std::int64_t sequence) const {
  MEGALITH_ASSERT(sequence >= 0 && sequence < sequences_, format("sequence {} of {}", sequence, sequences_));
  return modes_ == nullptr ? std::int8_t{0} : load<std::int8_t>(modes_ + sequence);
}

const std::byte* IndexedDataset::token_address(std::int64_t sequence, std::int64_t begin,
                                               std::int64_t count) const {
  const std::int64_t tokens = length(sequence);
  MEGALITH_ASSERT(begin >= 0 && count >= 0 && begin <= tokens && count <= tokens - begin,
                  format("tokens {} to {} of a sequence of {}", begin, begin + count, tokens));
  const std::int64_t start = offset(sequence);
  const auto available = static_cast<std::int64_t>(bin_.bytes().size());
  // length < 2^31 and size <= 8, so the product cannot overflow.
  if (start < 0 || start > available || tokens * size_of(storage_) > available - start) {
    fail(ErrorKind::input, prefix_ + ".idx",
         "sequence {} ({} tokens at byte {}) lies outside of the .bin file of {} bytes; one of the two is "
         "damaged or "
         "truncated",
         sequence, tokens, start, available);
  }
  return bin_.bytes().data() + start + begin * size_of(storage_);
}

void IndexedDataset::read(std::int64_t sequence, std::int64_t begin, std::span<Token> tokens,
                          std::int64_t vocab_size) const {
  if (tokens.empty()) return;
  const std::byte* address = token_address(sequence, begin, static_cast<std::int64_t>(tokens.size()));
  const std::int64_t width = size_of(storage_);
  const std::int64_t bound =
      vocab_size > 0 ? vocab_size : std::int64_t{std::numeric_limits<Token>::max()} + 1;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t value = stored_token(storage_, address + static_cast<std::int64_t>(i) * width);
    if (value < 0 || value >= bound) {
      fail(ErrorKind::input, prefix_ + ".bin",
           "token {} of sequence {} is {}, outside of the vocabulary of {}; the data was made with another "
           "tokenizer, or "
           "the file is damaged",
           begin + static_cast<std::int64_t>(i), sequence, value, bound);
    }
    tokens[i] = static_cast<Token>(value);
  }
}

std::vector<Token> IndexedDataset::read(std::int64_t sequence, std::int64_t vocab_size) const {
  token_address(sequence, 0, 0);  // before the allocation
  std::vector<Token> tokens(static_cast<std::size_t>(length(sequence)));
  read(sequence, 0, tokens, vocab_size);
  return tokens;
}

std::int64_t IndexedDataset::count_tokens(std::int64_t begin, std::int64_t end) const {
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    token_address(i, 0, 0);
    sum += length(i);
  }
  const auto room = static_cast<std::int64_t>(bin_.bytes().size()) / size_of(storage_);
  if (sum > room) {
    fail(ErrorKind::input, prefix_ + ".idx",
         "sequences {} to {} have {} tokens, more than the {} of the .bin file; the file is damaged", begin,
         end - 1, sum, room);
  }
  return sum;
}

std::uint64_t IndexedDataset::fingerprint() const {
  Hasher hasher;
  const std::uint64_t size = bin_.bytes().size();
  hasher.update(std::as_bytes(std::span(&size, 1)));
  hasher.update(idx_.bytes());
  return hasher.value();
}

IndexedDatasetReport IndexedDataset::verify(std::int64_t vocab_size, std::size_t limit) const {
  IndexedDatasetReport report;
  const auto problem = [&](const std::string& text) {
    if (report.problems.size() < limit) report.problems.push_back(text);
    ++report.problem_count;
  };
  const std::string idx = prefix_ + ".idx";
  const std::string bin = prefix_ + ".bin";
  const auto available = static_cast<std::int64_t>(bin_.bytes().size());
  const std::int64_t width = size_of(storage_);

  std::int64_t expected = 0;
  bool packed = true;
  bool seen = false;
  const std::int64_t bound =
      vocab_size > 0 ? vocab_size : std::int64_t{std::numeric_limits<Token>::max()} + 1;
  for (std::int64_t i = 0; i < sequences_; ++i) {
    const auto tokens = std::int64_t{load<std::int32_t>(lengths_ + i * 4)};
    const std::int64_t start = offset(i);
    if (tokens < 0) {
      problem(format("{}: sequence {} has the negative length {}", idx, i, tokens));
      packed = false;
      continue;
    }
    if (start < 0 || start > available || tokens * width > available - start) {
      problem(format("{}: sequence {} ({} tokens at byte {}) lies outside of the .bin file of {} bytes", idx,
                     i, tokens, start, available));
      packed = false;
      continue;
    }
    if (packed && start != expected) {
      packed = false;
      const std::string text = format(
          "{}: sequence {} begins at byte {}, not at {} where the one before ends", idx, i, start, expected);
      // A gap wastes bytes; an overlap means that a length or an offset is wrong.
      if (start < expected) {
        problem(text);
      } else {
        report.notes.push_back(text);
      }
    }
    expected = start + tokens * width;
    report.tokens += tokens;
    const std::byte* address = bin_.bytes().data() + start;
    std::int64_t strangers = 0;
    std::int64_t first_stranger = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t value = stored_token(storage_, address + t * width);
      if ((value < 0 || value >= bound) && ++strangers == 1) first_stranger = t;
      report.smallest_token = seen ? std::min(report.smallest_token, value) : value;
      report.largest_token = seen ? std::max(report.largest_token, value) : value;
      seen = true;
    }
    if (strangers > 0) {
      problem(
          format("{}: token {} of sequence {} (byte {}) is {}, outside of the vocabulary of {}, and so are "
                 "{} others of "
                 "this sequence",
                 bin, first_stranger, i, start + first_stranger * width,
                 stored_token(storage_, address + first_stranger * width), bound, strangers - 1));
    }
  }
  if (packed && expected != available) {
    problem(format("{}: {} bytes long, but the sequences of the .idx file end at byte {}", bin, available,
                   expected));
  }

  std::int64_t previous = 0;
  for (std::int64_t d = 0; d <= documents_; ++d) {
    const std::int64_t start = document_start(d);
    if (d == 0 && start != 0)
      problem(format("{}: the document index begins with {} instead of 0", idx, start));
    if (start < previous || start > sequences_) {
      problem(format("{}: document index entry {} is {}; expected {} to {}", idx, d, start, previous,
                     sequences_));
      continue;
    }
    previous = start;
  }
  if (previous != sequences_) {
    problem(
        format("{}: the document index ends at sequence {}, but the file has {}", idx, previous, sequences_));
  }
  return report;
}

}  // namespace megalith

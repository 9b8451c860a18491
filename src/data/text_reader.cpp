#include "data/text_reader.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace megalith {
namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 18;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

bool looks_like_json(const std::string& file, std::string_view beginning) {
  std::string name = std::filesystem::path(file).filename().string();
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  for (const std::string_view suffix : {".jsonl", ".json", ".ndjson"}) {
    if (name.ends_with(suffix)) return true;
  }
  for (const std::string_view suffix : {".txt", ".text", ".md"}) {
    if (name.ends_with(suffix)) return false;
  }
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && beginning[first] == '{';
}

}  // namespace

TextReader::TextReader(std::vector<std::string> files, const TextReaderOptions& options)
    : files_(std::move(files)), options_(options) {
  for (const std::string& file : files_) {
    std::error_code code;
    if (!std::filesystem::exists(file, code)) fail(ErrorKind::input, file, "there is no such file");
    const std::uintmax_t size = std::filesystem::file_size(file, code);
    if (!code) total_bytes_ += size;
  }
}

void TextReader::fill() {
  if (place_ > 0) {
    buffer_.erase(0, place_);
    searched_ -= std::min(searched_, place_);
    place_ = 0;
  }
  const std::size_t before = buffer_.size();
  buffer_.resize(before + read_bytes);
  const std::size_t got = stream_->read(std::span(buffer_).subspan(before));
  buffer_.resize(before + got);
  if (got == 0) ended_ = true;
  consumed_.store(finished_bytes_ + stream_->consumed(), std::memory_order_relaxed);
}

bool TextReader::open_next_file() {
  if (next_file_ == files_.size()) return false;
  file_ = files_[next_file_++];
  stream_ = open_byte_stream(file_);
  buffer_.clear();
  place_ = 0;
  searched_ = 0;
  line_ = 0;
  ended_ = false;
  while (!ended_ && (buffer_.size() < 3 || is_blank(buffer_)) && buffer_.size() < read_bytes) fill();
  if (buffer_.starts_with("\xef\xbb\xbf")) place_ = searched_ = 3;
  if (buffer_.starts_with("\xff\xfe") || buffer_.starts_with("\xfe\xff")) {
    fail(ErrorKind::input, file_,
         "is UTF-16 or UTF-32, as its first bytes say; text is read as UTF-8: iconv -f UTF-16 -t UTF-8 "
         "converts it");
  }
  json_ = options_.format == TextFormat::json_lines ||
          (options_.format == TextFormat::automatic &&
           looks_like_json(file_, std::string_view(buffer_).substr(place_)));
  return true;
}

void TextReader::too_long(std::uint64_t line) const {
  fail(ErrorKind::input, format("{}:{}", file_, line),
       "the document that begins here is longer than {} bytes; raise --max-document-bytes{}",
       options_.max_document_bytes,
       json_ || options_.sample_by == SampleBy::line ? ""
       : options_.sample_by == SampleBy::paragraph   ? ", or cut it by --sample-by line"
                                                     : ", or cut it by --sample-by paragraph or line");
}

bool TextReader::next_line(std::string_view& line) {
  while (true) {
    searched_ = std::max(searched_, place_);
    const std::size_t end = buffer_.find('\n', searched_);
    const bool found = end != std::string::npos;
    if (found || (ended_ && place_ < buffer_.size())) {
      const std::size_t stop = found ? end : buffer_.size();
      ++line_;
      if (stop - place_ > options_.max_document_bytes) too_long(line_);
      line = std::string_view(buffer_).substr(place_, stop - place_);
      place_ = searched_ = found ? stop + 1 : stop;
      return true;
    }
    if (ended_) return false;
    searched_ = buffer_.size();
    if (buffer_.size() - place_ > options_.max_document_bytes) too_long(line_ + 1);
    fill();
  }
}

void TextReader::add_piece(TextBatch& batch, std::string_view text, std::uint64_t line) const {
  batch.pieces.push_back({batch.bytes.size(), batch.bytes.size() + text.size(), line});
  batch.bytes.append(text);
}

void TextReader::next_of_lines(TextBatch& batch) {
  std::string_view line;
  while (batch.bytes.size() < options_.batch_bytes && next_line(line)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line)) add_piece(batch, line, line_);
  }
}

void TextReader::next_of_paragraphs(TextBatch& batch) {
  std::string_view line;
  bool open = false;
  while ((open || batch.bytes.size() < options_.batch_bytes) && next_line(line)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_blank(line)) {
      open = false;
    } else if (open) {
      TextBatch::Piece& piece = batch.pieces.back();
      if (piece.end - piece.begin + 1 + line.size() > options_.max_document_bytes) too_long(piece.line);
      batch.bytes.push_back('\n');
      batch.bytes.append(line);
      piece.end = batch.bytes.size();
    } else {
      add_piece(batch, line, line_);
      open = true;
    }
  }
}

void TextReader::next_of_file(TextBatch& batch) {
  while (!ended_) {
    if (buffer_.size() - place_ > options_.max_document_bytes) too_long(1);
    fill();
  }
  const std::string_view text = std::string_view(buffer_).substr(place_);
  if (text.size() > options_.max_document_bytes) too_long(1);
  if (!is_blank(text)) add_piece(batch, text, 1);
  buffer_.clear();
  buffer_.shrink_to_fit();
  place_ = searched_ = 0;
}

/// JSON cannot hold such a byte either, and says so where it is parsed.
void TextReader::refuse_zero_bytes(const TextBatch& batch) const {
  const std::size_t place = batch.bytes.find('\0');
  if (place == std::string::npos) return;
  const auto piece = std::find_if(batch.pieces.begin(), batch.pieces.end(),
                                  [&](const TextBatch::Piece& some) { return place < some.end; });
  const std::string_view before = batch.text(*piece).substr(0, place - piece->begin);
  const std::uint64_t line =
      piece->line + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  fail(ErrorKind::input, format("{}:{}:{}", file_, line, column),
       "is a zero byte, which plain text does not hold. UTF-16 without a byte order mark (iconv -f UTF-16LE "
       "-t UTF-8 "
       "converts it) or no text at all? Stray ones are removed by: tr -d '\\000'");
}

bool TextReader::next(TextBatch& batch) {
  batch.bytes.clear();
  batch.pieces.clear();
  while (batch.pieces.empty()) {
    if (!stream_ && !open_next_file()) return false;
    batch.file = file_;
    batch.json = json_;
    if (json_ || options_.sample_by == SampleBy::line) {
      next_of_lines(batch);
    } else if (options_.sample_by == SampleBy::paragraph) {
      next_of_paragraphs(batch);
    } else {
      next_of_file(batch);
    }
    if (!json_) refuse_zero_bytes(batch);
    if (batch.pieces.empty()) {
      finished_bytes_ += stream_->consumed();
      stream_.reset();
    }
  }
  return true;
}

std::vector<std::string> expand_patterns(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    if (pattern.find_first_of("*?[") == std::string::npos || std::filesystem::exists(pattern, ignored)) {
      if (!std::filesystem::exists(pattern, ignored))
        fail(ErrorKind::input, pattern, "there is no such file");
      files.push_back(pattern);
      continue;
    }
    ::glob_t matches{};
    const int code = ::glob(pattern.c_str(), 0, nullptr, &matches);
    for (std::size_t i = 0; code == 0 && i < matches.gl_pathc; ++i) files.emplace_back(matches.gl_pathv[i]);
    ::globfree(&matches);
    if (code != 0) fail(ErrorKind::input, pattern, "this pattern matches no file");
  }
  return files;
}

}  // namespace megalith

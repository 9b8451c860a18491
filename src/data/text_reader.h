// Documents out of text files, in order and in bounded memory: JSON lines, or plain text cut into documents
// by file, paragraph or line; plain, gzip or zstd. Batches come out raw, so that parsing and tokenizing can
// run on many threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_stream.h"

namespace megalith {

/// `automatic`: by name (.jsonl, .json, .ndjson; .txt, .text, .md), else JSON lines where the text begins
/// with a brace.
enum class TextFormat : std::uint8_t { automatic, json_lines, plain };
/// What makes a document of plain text: a whole file, a paragraph (text between blank lines), a line.
enum class SampleBy : std::uint8_t { document, paragraph, line };

struct TextReaderOptions {
  TextFormat format = TextFormat::automatic;
  SampleBy sample_by = SampleBy::document;
  std::uint64_t max_document_bytes = std::uint64_t{256} << 20;
  std::size_t batch_bytes = std::size_t{1} << 20;  ///< a batch ends with the document that reaches this
};

/// Some documents of one file.
struct TextBatch {
  struct Piece {
    std::size_t begin = 0;  ///< into `bytes`
    std::size_t end = 0;
    std::uint64_t line = 0;  ///< line of the file where it begins, from 1
  };
  std::string file;
  bool json = false;
  std::string bytes;
  std::vector<Piece> pieces;

  std::string_view text(const Piece& piece) const {
    return std::string_view(bytes).substr(piece.begin, piece.end - piece.begin);
  }
};

class TextReader {
 public:
  /// Raises Error (input) where a file is missing.
  TextReader(std::vector<std::string> files, const TextReaderOptions& options);

  /// The next documents; false at the end of the last file. Blank lines are no documents. A byte order mark
  /// is skipped. Raises Error (input) naming file and line where a document exceeds max_document_bytes, and
  /// for UTF-16 and zero bytes in plain text.
  bool next(TextBatch& batch);

  /// Bytes of all files, as they lie on disk (0 where not known: a pipe).
  std::uint64_t total_bytes() const { return total_bytes_; }
  /// How many of them were read; may be asked by another thread.
  std::uint64_t consumed_bytes() const { return consumed_.load(std::memory_order_relaxed); }

 private:
  bool open_next_file();
  void fill();
  void next_of_lines(TextBatch& batch);
  void next_of_paragraphs(TextBatch& batch);
  void next_of_file(TextBatch& batch);
  bool next_line(std::string_view& line);
  void add_piece(TextBatch& batch, std::string_view text, std::uint64_t line) const;
  void refuse_zero_bytes(const TextBatch& batch) const;
  [[noreturn]] void too_long(std::uint64_t line) const;

  std::vector<std::string> files_;
  TextReaderOptions options_;
  std::size_t next_file_ = 0;
  std::string file_;
  std::unique_ptr<ByteStream> stream_;
  bool json_ = false;
  bool ended_ = false;  ///< the stream has no more bytes
  std::string buffer_;
  std::size_t place_ = 0;     ///< bytes of the buffer already given out
  std::size_t searched_ = 0;  ///< bytes of the buffer known to hold no line end after place_
  std::uint64_t line_ = 0;    ///< number of the line next_line gave last
  std::uint64_t total_bytes_ = 0;
  std::uint64_t finished_bytes_ = 0;
  std::atomic<std::uint64_t> consumed_{0};
};

/// Files that the patterns name, in order: a pattern with * ? [ gives its matches sorted. Raises Error
/// (input) where a pattern or file names nothing.
std::vector<std::string> expand_patterns(const std::vector<std::string>& patterns);

}  // namespace megalith

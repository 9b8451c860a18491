// Text files to token files: reads, tokenizes on all cores and writes, order kept, memory bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/json_document.h"
#include "data/text_reader.h"
#include "data/tokenizer.h"

namespace megalith {

struct PrepareOptions {
  std::vector<std::string> files;
  TextReaderOptions reading;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::refuse;
  std::vector<std::string> keys = {"text"};  ///< JSON keys; each gets its own pair of files
  std::string output_prefix;                 ///< PREFIX gives PREFIX_KEY_document.bin and .idx
  bool append_eod = false;
  int workers = 1;
};

struct PrepareProgress {
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;  ///< among them: no token, so that no end-of-document was appended either
  std::int64_t tokens = 0;           ///< of all keys
  std::uint64_t text_bytes = 0;      ///< of the lines and texts, decompressed
  std::uint64_t read_bytes = 0;      ///< of the files, as they lie on disk
  std::uint64_t total_bytes = 0;
};

/// "PREFIX_KEY_document"
std::string prepared_name(const std::string& output_prefix, const std::string& key);

/// Documents and sequences are Megatron-LM's: a text without tokens adds none, a document without tokens
/// stays in the document index with no sequence. `report` is called from this thread after each batch; where
/// it gives false, all stops and nothing is left: the result is false. Raises Error as the parts do, for the
/// first fault in the order of the text.
bool prepare_dataset(const PrepareOptions& options, const Tokenizer& tokenizer,
                     const std::function<bool(const PrepareProgress&)>& report, PrepareProgress& result);

}  // namespace megalith

// The words of text files, counted on all cores: the first half of training a tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/bpe_word_counts.h"
#include "data/pretokenizer.h"
#include "data/text_reader.h"
#include "device/parallel_for.h"

namespace megalith {

struct TrainingText {
  std::vector<std::string> files;
  TextReaderOptions reading;
  std::vector<std::string> keys;  ///< of JSON lines
};

struct TrainingTextProgress {
  std::uint64_t text_bytes = 0;
  std::uint64_t read_bytes = 0;   ///< of the files as they lie on disk
  std::uint64_t total_bytes = 0;  ///< 0 where not known
  std::int64_t documents = 0;
};

/// Memory: some tens of megabytes (more where one document is longer) and the different words. The counts do
/// not depend on the number of threads. Raises what TextReader and JsonTexts raise.
WordTable count_words_of_files(const TrainingText& text, const Pretokenizer& pretokenizer, ThreadTeam& team,
                               const std::function<void(const TrainingTextProgress&)>& progress);

/// Ends of parts of about `bytes` bytes of a text, such that the words of the parts are the words of the
/// text: each but the last lies between a printable ASCII character and a line end. The last is text.size().
std::vector<std::size_t> safe_cuts(std::string_view text, std::size_t bytes);

}  // namespace megalith

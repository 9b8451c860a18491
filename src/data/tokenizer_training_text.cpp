#include "data/tokenizer_training_text.h"

#include <utility>

#include "data/json_document.h"

namespace megalith {
namespace {

constexpr std::size_t task_bytes = std::size_t{1} << 18;
constexpr std::size_t round_bytes = std::size_t{1} << 24;

/// Some text of one batch: documents of JSON lines, or a part of one plain document.
struct Task {
  const TextBatch* batch;
  std::size_t first_piece;
  std::size_t end_piece;
  std::string_view part;  // plain text only
};

void add_tasks(const TextBatch& batch, std::vector<Task>& tasks) {
  std::size_t first = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
    const std::string_view text = batch.text(batch.pieces[i]);
    if (!batch.json) {
      std::size_t begin = 0;
      for (const std::size_t end : safe_cuts(text, task_bytes)) {
        tasks.push_back({&batch, i, i + 1, text.substr(begin, end - begin)});
        begin = end;
      }
      continue;
    }
    bytes += text.size();
    if (bytes >= task_bytes || i + 1 == batch.pieces.size()) {
      tasks.push_back({&batch, first, i + 1, {}});
      first = i + 1;
      bytes = 0;
    }
  }
}

void count_task(const Task& task, const Pretokenizer& pretokenizer, const std::vector<std::string>& keys,
                WordTable& table) {
  if (!task.batch->json) {
    count_words(pretokenizer, task.part, table);
    return;
  }
  JsonTexts json(keys);
  for (std::size_t i = task.first_piece; i < task.end_piece; ++i) {
    const TextBatch::Piece& piece = task.batch->pieces[i];
    for (const auto& texts : json.read(task.batch->text(piece), task.batch->file, piece.line)) {
      for (const std::string_view text : texts) count_words(pretokenizer, text, table);
    }
  }
}

}  // namespace

std::vector<std::size_t> safe_cuts(std::string_view text, std::size_t bytes) {
  std::vector<std::size_t> cuts;
  std::size_t begin = 0;
  while (text.size() - begin > bytes) {
    // A word that begins before a line end and holds a printable character ends there, whatever follows.
    std::size_t cut = begin + bytes;
    while ((cut = text.find('\n', cut)) != std::string_view::npos) {
      const char before = text[cut - 1];
      if (before > ' ' && before <= '~') break;
      ++cut;
    }
    if (cut == std::string_view::npos) break;
    cuts.push_back(cut);
    begin = cut;
  }
  cuts.push_back(text.size());
  return cuts;
}

WordTable count_words_of_files(const TrainingText& text, const Pretokenizer& pretokenizer, ThreadTeam& team,
                               const std::function<void(const TrainingTextProgress&)>& progress) {
  TextReader reader(text.files, text.reading);
  std::vector<WordTable> tables(static_cast<std::size_t>(team.threads()));
  TrainingTextProgress state;
  state.total_bytes = reader.total_bytes();
  for (bool more = true; more;) {
    std::vector<TextBatch> batches;
    std::size_t bytes = 0;
    while (bytes < round_bytes) {
      TextBatch batch;
      more = reader.next(batch);
      if (!more) break;
      bytes += batch.bytes.size();
      state.documents += static_cast<std::int64_t>(batch.pieces.size());
      batches.push_back(std::move(batch));
    }
    std::vector<Task> tasks;
    for (const TextBatch& batch : batches) add_tasks(batch, tasks);
    team.parallel_tasks(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t task, int slot) {
      count_task(tasks[static_cast<std::size_t>(task)], pretokenizer, text.keys,
                 tables[static_cast<std::size_t>(slot)]);
    });
    state.text_bytes += bytes;
    state.read_bytes = reader.consumed_bytes();
    progress(state);
  }
  WordTable words = std::move(tables.front());
  for (std::size_t i = 1; i < tables.size(); ++i) words.add(std::exchange(tables[i], WordTable()));
  return words;
}

}  // namespace megalith

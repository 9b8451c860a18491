// Names and states of the folders under a checkpoint root.
//
//   iter_0000100              committed (holds COMMITTED)
//   iter_0000100.writing-PID  being written; of no use to a reader, removed by the next save
//   iter_0000100.removing     being deleted by retention; likewise
//   iter_0000100.superseded   whole, but of a course that a run going back to an older one has left; kept,
//   and read
//                             only where it is named
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace megalith {

inline constexpr const char* checkpoint_marker = "COMMITTED";
inline constexpr const char* checkpoint_index = "index.json";
inline constexpr const char* checkpoint_latest = "latest_checkpointed_iteration.txt";

/// "iter_0000100", Megatron's form.
std::string iteration_folder_name(std::int64_t iteration);

/// The iteration in such a name, -1 where it is none.
std::int64_t iteration_of_folder(const std::string& name);

bool is_committed(const std::filesystem::path& folder);

/// Iterations of the committed checkpoints under `root`, ascending; empty where it does not exist.
std::vector<std::int64_t> committed_iterations(const std::filesystem::path& root);

/// Removes what an interrupted save or removal left behind.
void remove_leftovers(const std::filesystem::path& root);

/// Makes the finished folder `from` appear as `to`, replacing a committed folder of that name in one step.
void publish_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Renames the committed checkpoints after `iteration` to "iter_N.superseded" (with a number behind where
/// that is taken), newest first, so that none of them is taken for the newest of the run that goes on from
/// `iteration`, nor counted by retention. Returns their iterations, ascending. Raises Error (environment)
/// where one cannot be renamed.
std::vector<std::int64_t> set_later_aside(const std::filesystem::path& root, std::int64_t iteration);

/// Removes committed checkpoints but the `retain` newest; iterations divisible by `retain_interval` stay.
void apply_retention(const std::filesystem::path& root, std::int64_t retain, std::int64_t retain_interval);

}  // namespace megalith

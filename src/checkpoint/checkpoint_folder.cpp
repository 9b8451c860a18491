#include "checkpoint/checkpoint_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "iter_";
constexpr std::string_view writing = ".writing-";
constexpr std::string_view removing = ".removing";
constexpr std::string_view superseded = ".superseded";

std::vector<fs::path> children(const fs::path& root) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator entry(root, code), end; !code && entry != end; entry.increment(code)) {
    found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string iteration_folder_name(std::int64_t iteration) {
  return format("iter_{:07}", iteration);
}

std::int64_t iteration_of_folder(const std::string& name) {
  if (!name.starts_with(prefix)) return -1;
  std::int64_t iteration = -1;
  const char* end = name.data() + name.size();
  const auto [rest, code] = std::from_chars(name.data() + prefix.size(), end, iteration);
  if (code != std::errc() || rest != end || iteration < 0) return -1;
  return iteration;
}

bool is_committed(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(folder / checkpoint_marker, code);
}

std::vector<std::int64_t> committed_iterations(const fs::path& root) {
  std::vector<std::int64_t> iterations;
  for (const fs::path& child : children(root)) {
    const std::int64_t iteration = iteration_of_folder(child.filename().string());
    if (iteration >= 0 && is_committed(child)) iterations.push_back(iteration);
  }
  std::sort(iterations.begin(), iterations.end());
  return iterations;
}

void remove_leftovers(const fs::path& root) {
  for (const fs::path& child : children(root)) {
    const std::string name = child.filename().string();
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos || iteration_of_folder(name.substr(0, dot)) < 0) continue;
    const std::string_view suffix = std::string_view(name).substr(dot);
    std::error_code ignored;
    if (suffix.starts_with(writing) || suffix == removing) fs::remove_all(child, ignored);
  }
}

void publish_folder(const fs::path& from, const fs::path& to) {
  std::error_code code;
  if (fs::exists(to, code)) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      sync_folder(to.parent_path());
      fs::remove_all(from, code);
      return;
    }
    // No exchange on this file system: for a moment neither name is there, but the old folder survives a
    // crash under a name that remove_leftovers() clears only once a newer save starts.
    fs::path old = to;
    old += removing;
    fs::remove_all(old, code);
    fs::rename(to, old, code);
    if (code)
      fail(ErrorKind::environment, to.string(), "cannot move the older checkpoint aside: {}", code.message());
    fs::rename(from, to, code);
    if (code) {
      const std::string reason = code.message();
      fs::rename(old, to, code);
      fail(ErrorKind::environment, to.string(), "cannot give the finished checkpoint its name: {}", reason);
    }
    sync_folder(to.parent_path());
    fs::remove_all(old, code);
    return;
  }
  fs::rename(from, to, code);
  if (code) {
    fail(ErrorKind::environment, to.string(), "cannot give the finished checkpoint its name: {}",
         code.message());
  }
  sync_folder(to.parent_path());
}

std::vector<std::int64_t> set_later_aside(const fs::path& root, std::int64_t iteration) {
  std::vector<std::int64_t> later = committed_iterations(root);
  later.erase(later.begin(), std::upper_bound(later.begin(), later.end(), iteration));
  for (auto number = later.rbegin(); number != later.rend(); ++number) {
    const fs::path folder = root / iteration_folder_name(*number);
    std::error_code code;
    fs::path aside = folder;
    aside += superseded;
    for (int copy = 2; fs::exists(aside, code); ++copy) {
      aside = folder;
      aside += format("{}-{}", superseded, copy);
    }
    fs::rename(folder, aside, code);
    if (code) {
      fail(ErrorKind::environment, folder.string(), "cannot set this later checkpoint aside: {}",
           code.message());
    }
  }
  if (!later.empty()) sync_folder(root);
  return later;
}

void apply_retention(const fs::path& root, std::int64_t retain, std::int64_t retain_interval) {
  if (retain <= 0) return;
  std::vector<std::int64_t> iterations = committed_iterations(root);
  if (static_cast<std::int64_t>(iterations.size()) <= retain) return;
  iterations.resize(iterations.size() - static_cast<std::size_t>(retain));
  for (const std::int64_t iteration : iterations) {
    if (retain_interval > 0 && iteration % retain_interval == 0) continue;
    const fs::path folder = root / iteration_folder_name(iteration);
    fs::path doomed = folder;
    doomed += removing;
    std::error_code ignored;
    fs::remove_all(doomed, ignored);
    fs::rename(folder, doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
}

}  // namespace megalith

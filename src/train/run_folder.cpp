#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

fs::path fresh_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> stamp{};
  const std::size_t length = std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
  const std::string name(stamp.data(), length);
  create_folders("runs");
  for (int attempt = 1;; ++attempt) {
    const fs::path candidate = fs::path("runs") / (attempt == 1 ? name : format("{}-{}", name, attempt));
    std::error_code code;
    if (fs::create_directory(candidate, code)) return candidate;
    if (code)
      fail(ErrorKind::environment, candidate.string(), "cannot create this folder: {}", code.message());
  }
}

}  // namespace

RunFolder::RunFolder(const std::string& save) : path_(save.empty() ? fresh_folder() : fs::path(save)) {
  create_folders(path_);
  const fs::path lock_path = path_ / ".lock";
  lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    fail(ErrorKind::environment, path_.string(), "cannot write in the run folder: {}; choose another --save",
         std::generic_category().message(errno));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    fail(ErrorKind::usage, path_.string(),
         "another process is training in this run folder; choose another --save or stop it");
  }
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace megalith

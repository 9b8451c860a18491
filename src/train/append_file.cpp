#include "train/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace megalith {

AppendFile::AppendFile(const std::filesystem::path& path, bool fresh) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_EXCL : 0), 0644);
  if (descriptor_ < 0 && !(fresh && errno == EEXIST)) {
    fail(ErrorKind::environment, path.string(), "cannot open for appending: {}",
         std::generic_category().message(errno));
  }
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      fail(ErrorKind::environment, path_.string(), "cannot append: {}",
           std::generic_category().message(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace megalith

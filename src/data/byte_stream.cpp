#include "data/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/error.h"

namespace megalith {
namespace {

constexpr int writer_patience_ms = 5000;

std::string reason(int code) {
  return std::generic_category().message(code);
}

class FileStream : public ByteStream {
 public:
  explicit FileStream(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail(ErrorKind::input, path_, "cannot open this file: {}", reason(errno));
    try {
      struct stat status{};
      if (::fstat(descriptor_, &status) != 0) fail(ErrorKind::input, path_, "cannot stat: {}", reason(errno));
      if (S_ISDIR(status.st_mode)) {
        fail(ErrorKind::input, path_, "is a folder; give its files, for example {}/*.jsonl", path_);
      }
      if (S_ISFIFO(status.st_mode)) wait_for_writer();
      ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
      if (head_size_ == 0) head_size_ = read_some(head_);
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  ~FileStream() override { ::close(descriptor_); }

  /// The first bytes, which read() gives again.
  std::string_view head() const { return {head_.data(), head_size_}; }

  std::size_t read(std::span<char> buffer) override {
    if (head_given_ < head_size_) {
      const std::size_t count = std::min(buffer.size(), head_size_ - head_given_);
      std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(head_given_), count, buffer.begin());
      head_given_ += count;
      consumed_ += count;
      return count;
    }
    const std::size_t count = read_some(buffer);
    consumed_ += count;
    return count;
  }
  std::uint64_t consumed() const override { return consumed_; }

 private:
  /// Opened without O_NONBLOCK, a pipe that nobody writes into would be waited for without end. A read from
  /// it says "end" until a writer is there and "try again" from then on.
  void wait_for_writer() {
    constexpr int step_ms = 20;
    for (int waited = 0; waited < writer_patience_ms; waited += step_ms) {
      const ssize_t got = ::read(descriptor_, head_.data(), head_.size());
      if (got > 0) head_size_ = static_cast<std::size_t>(got);
      if (got != 0) return;
      pollfd state{descriptor_, POLLIN, 0};
      ::poll(&state, 1, step_ms);
      if ((state.revents & POLLHUP) != 0) return;  // a writer came and left
      if (state.revents != 0) ::poll(nullptr, 0, step_ms);
    }
    fail(ErrorKind::input, path_, "is a pipe that nobody has opened for writing within {} s",
         writer_patience_ms / 1000);
  }

  std::size_t read_some(std::span<char> buffer) {
    while (true) {
      const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) fail(ErrorKind::input, path_, "cannot read: {}", reason(errno));
    }
  }

  std::string path_;
  int descriptor_;
  std::array<char, 16> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_given_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::string& path) {
  auto file = std::make_unique<FileStream>(path);
  const std::string head(file->head());
  if (head.starts_with("\x1f\x8b")) return make_gzip_stream(std::move(file), path);
  if (head.starts_with("\x28\xb5\x2f\xfd")) return make_zstd_stream(std::move(file), path);
  if (head.starts_with("\xfd"
                       "7zXZ")) {
    fail(ErrorKind::input, path, "is compressed with xz, which is not read here; run: xz -dk {}", path);
  }
  if (head.starts_with("BZh")) {
    fail(ErrorKind::input, path, "is compressed with bzip2, which is not read here; run: bzip2 -dk {}", path);
  }
  if (head.starts_with("PK\x03\x04")) {
    fail(ErrorKind::input, path, "is a zip archive, which is not read here; run: unzip {}", path);
  }
  return file;
}

}  // namespace megalith

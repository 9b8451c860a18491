#include "core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 20;

std::string reason(int code) {
  return std::generic_category().message(code);
}

class Descriptor {
 public:
  // Without O_NONBLOCK, opening a pipe waits for a writer that may never come.
  Descriptor(const std::filesystem::path& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) fail(ErrorKind::input, path.string(), "cannot open this file: {}", reason(errno));
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  std::uint64_t file_size(const std::filesystem::path& path) const {
    struct stat status{};
    if (::fstat(value_, &status) != 0)
      fail(ErrorKind::input, path.string(), "cannot stat: {}", reason(errno));
    if (!S_ISREG(status.st_mode)) {
      const char* kind = S_ISDIR(status.st_mode)    ? "a folder"
                         : S_ISFIFO(status.st_mode) ? "a pipe"
                                                    : "a device or socket";
      fail(ErrorKind::input, path.string(), "is {}, not a regular file", kind);
    }
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  int value_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const Descriptor file(path, O_RDONLY);
  const std::uint64_t size = file.file_size(path);
  if (size > limit) {
    fail(ErrorKind::input, path.string(), "is {} bytes long, more than the {} accepted here", size, limit);
  }
  std::string content(size, '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::input, path.string(), "cannot read: {}", reason(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  size_ = file.file_size(path);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED)
    fail(ErrorKind::input, path.string(), "cannot map {} bytes: {}", size_, reason(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + format(".tmp-{}", ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail(ErrorKind::environment, path_.string(), "cannot create this file: {}", reason(errno));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  buffer_.append(text, bytes.size());
  size_ += bytes.size();
  if (buffer_.size() >= write_buffer_bytes) flush();
}

void AtomicFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      fail(ErrorKind::environment, path_.string(),
           "cannot write after {} bytes: {}. Nothing under this name has changed.",
           size_ - buffer_.size() + done, reason(errno));
    }
    done += static_cast<std::size_t>(put);
  }
#ifdef __linux__
  // The disk may begin now, so that commit() waits for little. Where it cannot, commit() does all.
  ::sync_file_range(descriptor_, static_cast<off64_t>(size_ - buffer_.size()), static_cast<off64_t>(done),
                    SYNC_FILE_RANGE_WRITE);
#endif
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0) {
    fail(ErrorKind::environment, path_.string(), "cannot flush to disk: {}", reason(errno));
  }
  ::close(std::exchange(descriptor_, -1));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary_.c_str());
    fail(ErrorKind::environment, path_.string(), "cannot rename the finished file: {}", reason(code));
  }
  sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void create_folders(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) fail(ErrorKind::environment, folder.string(), "cannot create this folder: {}", code.message());
}

}  // namespace megalith

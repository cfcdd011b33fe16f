#ifndef TIERCEL_LIB_DOCUMENTS_FILE_DESCRIPTOR_H_
#define TIERCEL_LIB_DOCUMENTS_FILE_DESCRIPTOR_H_

#include <unistd.h>

namespace tiercel::document {

// Owns a descriptor and closes it; a negative one is none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FILE_DESCRIPTOR_H_

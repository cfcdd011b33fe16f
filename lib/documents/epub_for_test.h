#ifndef TIERCEL_LIB_DOCUMENTS_EPUB_FOR_TEST_H_
#define TIERCEL_LIB_DOCUMENTS_EPUB_FOR_TEST_H_

#include <zip.h>

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace tiercel::document {

// A ZIP archive in memory of files by name.
inline std::string ZipOf(const std::map<std::string, std::string>& files,
                         const char* password = nullptr) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* const archive =
      zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error);
  for (const auto& [name, bytes] : files) {
    zip_source_t* const source =
        zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const zip_int64_t index =
        zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    EXPECT_GE(index, 0) << name;
    if (password != nullptr) {
      EXPECT_EQ(
          zip_file_set_encryption(archive, static_cast<zip_uint64_t>(index),
                                  ZIP_EM_AES_256, password),
          0);
    }
  }
  EXPECT_EQ(zip_close(archive), 0);
  std::string bytes;
  EXPECT_EQ(zip_source_open(target), 0);
  zip_source_seek(target, 0, SEEK_END);
  bytes.resize(static_cast<size_t>(zip_source_tell(target)));
  zip_source_seek(target, 0, SEEK_SET);
  EXPECT_EQ(zip_source_read(target, bytes.data(), bytes.size()),
            static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(target);
  zip_source_free(target);
  zip_error_fini(&error);
  return bytes;
}

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_EPUB_FOR_TEST_H_

/* Errors: the status that a call returns, its code and its sentence; the log;
 * and the macros of all headers. Part of tiercel.h, which has the conventions.
 */
#ifndef TIERCEL_ERROR_H_
#define TIERCEL_ERROR_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TIERCEL_API __attribute__((visibility("default")))
#else
#define TIERCEL_API
#endif

/* A struct of this type with its size set and zeros behind it:
 *
 *   tiercel_model_params params = TIERCEL_INIT(tiercel_model_params); */
#ifdef __cplusplus
#define TIERCEL_INIT(type)             \
  ([]() noexcept {                     \
    type zeroed = {};                  \
    zeroed.struct_size = sizeof(type); \
    return zeroed;                     \
  }())
#else
#define TIERCEL_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tiercel_status {
  TIERCEL_OK = 0,
  TIERCEL_FAILED = 1,        /* an internal failure */
  TIERCEL_USAGE = 2,         /* a parameter is wrong */
  TIERCEL_INVALID_INPUT = 3, /* a model or a text is invalid or unsupported */
  TIERCEL_OUT_OF_MEMORY = 4, /* memory does not suffice */
  TIERCEL_NO_DEVICE = 5,
  TIERCEL_IO = 6,
  TIERCEL_CANCELLED = 7, /* by a callback or tiercel_session_cancel */
  TIERCEL_BUFFER_TOO_SMALL = 8
} tiercel_status;

/* Returns "out of memory" for TIERCEL_OUT_OF_MEMORY, and so on; "unknown
 * status" for other numbers. Static, never NULL. May be called from any thread.
 */
TIERCEL_API const char* tiercel_status_name(tiercel_status status);

/* The codes of errors, each with the one status that it comes with. They are
 * stable; later versions may have more. Some are seen in warnings alone.
 *
 * TIERCEL_FAILED
 *   internal                  the library has a fault, or a callback threw an
 *                             exception
 *   non_finite                a logit is NaN or infinite: weights or KV are
 *                             broken
 *   nothing_allowed           a mask (tiercel_mask) allows no next token
 *   rank_failed               another rank of the model has failed
 *
 * TIERCEL_USAGE
 *   cannot_split              tensor_parallel exceeds what the model's heads
 *                             and columns, or the GPUs of this machine, can be
 *                             divided into
 *   draft_machine             the draft model was not opened beside the model
 *   empty_prompt              a generation begins with no token held
 *   forked                    the session was made in the process from which
 *                             this one was forked
 *   invalid_argument          a value is out of range, of another model, or has
 *                             no effect here; the message names it
 *   invalid_compute           compute is none of its words
 *   invalid_context           context is negative or above what positions can
 *                             count
 *   invalid_device            device is none of its words
 *   invalid_environment       TIERCEL_ISA names no ISA of this machine
 *   invalid_host_layers       host_layers does not suit the model or the device
 *   invalid_kv_type           kv_type_k or kv_type_v is none of its words, or
 *                             does not suit the model
 *   invalid_page              the library calls one of its operations with a
 *                             wrong page: a fault of its own
 *   invalid_position          the same, with a wrong position
 *   invalid_rope              a rope_ or yarn_ setting is out of range
 *   invalid_sampling          a field of tiercel_sampling is out of range
 *   invalid_simulation        a field of tiercel_simulation is out of range
 *   invalid_sizes             the library calls one of its operations with
 *                             wrong sizes: a fault of its own
 *   invalid_stop              a stop text is empty or too long, or there are
 *                             too many
 *   invalid_struct_size       struct_size is not set, or a field is set that
 *                             this version does not know
 *   invalid_threads           threads is not 0 to 1024
 *   invalid_view              the library calls one of its operations with a
 *                             wrong view: a fault of its own
 *   no_weights                the model was opened without its weights
 *   null_argument             an argument or a field that must be given is NULL
 *   session_in_use            another call uses the session or one that shares
 *                             pages with it
 *   unsupported_device        the rates of this kind of device are not measured
 *   view_too_large            the policy's view needs a larger context than the
 *                             session has
 *
 * TIERCEL_INVALID_INPUT
 *   cannot_continue           continue_last: the template does not end the text
 *                             as it is
 *   context_length_exceeded   the text has more tokens than the context holds
 *   draft_context             the draft model was made for too few positions
 *   draft_vocabulary          the draft model has another vocabulary
 *   duplicate_key             a GGUF file has a key of metadata twice
 *   duplicate_tensor          a checkpoint has a tensor twice
 *   git_lfs_pointer           a file only points to a checkpoint in Git LFS
 *   header_too_large          the header of a safetensors file is too large
 *   header_truncated          a safetensors file ends within its header
 *   invalid_alignment         a GGUF file has a wrong alignment
 *   invalid_header            the header of a safetensors file is malformed
 *   invalid_index             the index of a safetensors directory is wrong
 *   invalid_json              a file of the checkpoint is not valid JSON
 *   invalid_key               a GGUF file has a malformed key
 *   invalid_metadata          a setting of the checkpoint is missing, of a
 *                             wrong type or out of range
 *   invalid_name              a tensor's name is malformed
 *   invalid_offset            a tensor's data do not lie where they must
 *   invalid_shape             a tensor has a wrong shape
 *   invalid_split             the parts of a split GGUF do not belong together
 *   invalid_text              the vocabulary cannot spell the bytes of a text
 *   invalid_token             a token id is not in the vocabulary
 *   invalid_value             a GGUF file has a malformed value
 *   invalid_vocab             the vocabulary of the checkpoint is inconsistent
 *   limit_exceeded            a file has more of something than is allowed
 *   missing_tensor            the checkpoint lacks a tensor
 *   model_truncated           a GGUF file ends too early
 *   no_chat_template          the checkpoint has no chat template
 *   no_tokenizer              the checkpoint has no tokenizer
 *   non_finite_weights        check_tensors found NaN or infinity
 *   not_a_checkpoint          the path leads to no checkpoint
 *   not_a_regular_file        a checkpoint's file is a folder, a pipe or a
 *                             device
 *   not_gguf                  the file is not GGUF; the message says what it is
 *   overflow                  a size in a checkpoint exceeds 64 bits
 *   template_error            the chat template is wrong or refuses the
 *                             messages
 *   text_damaged              a file of the prompt cache is damaged
 *   text_version              a file of the prompt cache is of another version
 *   too_long                  a text has more tokens than are allowed
 *   unsupported_architecture  the checkpoint has an architecture that cannot be
 *                             run
 *   unsupported_dtype         a safetensors file has a tensor of an unknown
 *                             type
 *   unsupported_quantization  the checkpoint is quantized in a way that cannot
 *                             be run
 *   unsupported_rope_scaling  the checkpoint scales RoPE in a way that cannot
 *                             be run
 *   unsupported_tokenizer     the checkpoint's tokenizer cannot be run
 *   unsupported_type          a GGUF file has a value or tensor of a type that
 *                             cannot be used
 *   unsupported_version       a GGUF file is of another version
 *   wrong_endianness          a GGUF file is big-endian
 *
 * TIERCEL_INVALID_INPUT of tiercel_documents.h alone
 *   chapter_not_found         the document has no chapter of this number or
 *                             title
 *   document_too_large        a file, or the text in it, is too large
 *   encrypted_document        the document is encrypted
 *   hostile_name              an archive has a file that would lie outside of
 *                             it
 *   html_too_complex          a page is nested too deeply, or takes too much
 *                             memory
 *   invalid_archive           an archive is damaged
 *   invalid_epub              an EPUB lacks its package or its pages
 *   invalid_fb2               a FictionBook has no body that can be read
 *   invalid_mhtml             a saved web page or mail has no page or text
 *   invalid_pdf               a PDF is damaged, or is none
 *   no_chapters               the document has no chapters
 *   no_pages                  the document has no page numbers
 *   not_text                  a file is binary, or in UTF-16 or UTF-32 without
 *                             a byte order mark
 *   nothing_fits              not one character fits a part
 *   page_not_found            the document has no page of this number
 *   pdf_too_complex           a PDF takes too much time or memory, or has too
 *                             much text
 *   pdf_tools_missing         the programs that read PDF are not installed
 *   rtf_too_complex           the groups of an RTF file are nested too deeply
 *   scanned_document          a PDF has pages, but no text
 *   too_many_files            an archive has too many files
 *   unsupported_document      an archive is no book
 *   zip_bomb                  an archive unpacks to far more bytes than it has
 *
 * TIERCEL_OUT_OF_MEMORY
 *   does_not_fit              a session does not fit in memory; the message
 *                             says what would
 *   no_thread                 the system gives no further thread
 *   out_of_memory             the system, the device or a budget gives no more
 *                             memory
 *
 * TIERCEL_NO_DEVICE
 *   copy_failed               the link to the device failed
 *   device_failed             a call of the device's driver failed
 *   device_lost               the device can no longer be used by this process
 *   gather_failed             the ranks' parts of a result could not be joined
 *   no_device                 there is no such device, or it cannot be used
 *   no_library                a library of the device is missing or too old
 *
 * TIERCEL_IO
 *   cannot_read               cache_dir cannot be read
 *   cannot_write              nothing can be kept in cache_dir
 *   changed_during_load       a checkpoint's file changed while it was read
 *   disk_full                 a disk, or the prompt cache, has no room
 *   file_not_found            a file is not there
 *   io_error                  the system could not open, read or write a file
 *   no_build_id               there is no prompt cache (tiercel_build_id)
 *   not_found                 a file of the prompt cache has gone
 *   page_damaged              a page of KV on disk is not what was written
 *   prompt_cache_full         it has no room beside other parts of the text
 *   unsafe_folder             others may write to the folder of the prompt
 *                             cache
 *
 * TIERCEL_CANCELLED
 *   cancelled                 a callback or tiercel_session_cancel ended the
 *                             call
 *
 * TIERCEL_BUFFER_TOO_SMALL
 *   buffer_too_small          the buffer holds less than *size now says */

/* A tiercel_error may be used again for later calls. */
typedef struct tiercel_error {
  size_t struct_size;
  char code[48];      /* of the table above; "" if the call succeeded */
  char message[1024]; /* a sentence for people: subject, got, needed */
} tiercel_error;

typedef enum tiercel_log_level {
  TIERCEL_LOG_ERROR = 1,   /* a call that had begun failed */
  TIERCEL_LOG_WARNING = 2, /* a warning, as in reports; each once */
  TIERCEL_LOG_INFO = 3     /* a call did something: how much, and its seconds */
} tiercel_log_level;
/* Receives a sentence for the program's log; its wording may change. It comes
 * as a call on the model or one of its sessions ends, on the thread of that
 * call's callbacks. An exception that it throws is dropped. */
typedef void (*tiercel_log)(void* user_data, int32_t level,
                            const char* sentence);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_ERROR_H_ */

# Runs at every build: writes build_info.h anew if the commit is another one, or
# if the tree began or ceased to differ from it.
#
#   cmake -D SOURCE=... -D VERSION=... -D BUILD_TYPE=... -D HEADER=... -P ...

execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --exclude *
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.h.in ${HEADER} @ONLY)

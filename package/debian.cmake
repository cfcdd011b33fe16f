# Debian packages, by `cpack --config build/package/CPackConfig.cmake` after the
# preset `package`: libtiercel0, libtiercel-documents0, libtiercel-dev and
# tiercel, and with CUDA libtiercel-cuda.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "Tiercel")
set(CPACK_PACKAGE_CONTACT
    "Tiercel maintainers <maintainers@tiercel.invalid>")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_CURRENT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)

# Names the package of a component, and installs the files that every package of
# Debian has.
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(about
    "Tiercel runs language models over whole books on small machines: the KV
cache lies in host memory, with the disk behind it, and speculative decoding
over small views of it is lossless.")
function(tiercel_package component name section summary)
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION "${summary}\n${about}"
      PARENT_SCOPE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(CONFIGURE OUTPUT ${folder}/changelog CONTENT
"tiercel (@PROJECT_VERSION@) unstable; urgency=medium

  * Made of the source tree.

 -- @CPACK_PACKAGE_CONTACT@  @today@
" @ONLY)
  execute_process(COMMAND gzip -9nkf ${folder}/changelog)
  install(FILES ${folder}/changelog.gz
                ${CMAKE_CURRENT_SOURCE_DIR}/copyright
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
          COMPONENT ${component})
endfunction()

file(CONFIGURE OUTPUT triggers CONTENT "activate-noawait ldconfig\n")
# Names the package of a shared library. CPack adds scripts that call ldconfig,
# beside the trigger that Debian wants.
function(tiercel_library_package component name summary)
  tiercel_package(${component} ${name} libs "${summary}")
  string(TOUPPER ${component} COMPONENT)
  foreach(part NAME SECTION)
    set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_${part}
        ${CPACK_DEBIAN_${COMPONENT}_PACKAGE_${part}} PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION
      "${CPACK_COMPONENT_${COMPONENT}_DESCRIPTION}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_CONTROL_EXTRA
      ${CMAKE_CURRENT_BINARY_DIR}/triggers PARENT_SCOPE)
  file(CONFIGURE OUTPUT overrides/${name} CONTENT
       "@name@: maintscript-calls-ldconfig\n" @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/overrides/${name}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
          COMPONENT ${component})
endfunction()

set(library libtiercel${PROJECT_VERSION_MAJOR})
set(documents libtiercel-documents${PROJECT_VERSION_MAJOR})
tiercel_library_package(runtime ${library}
                        "long-context language models, the shared library")
tiercel_library_package(documents ${documents} "books as text with places")
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_RECOMMENDS "poppler-utils, poppler-data")
tiercel_package(development libtiercel-dev libdevel
                "long-context language models, headers and static library")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${library} (= ${PROJECT_VERSION}), ${documents} (= ${PROJECT_VERSION}), libhwloc-dev, libonig-dev, liburing-dev, libutf8proc-dev, libxxhash-dev")
tiercel_package(tools tiercel text
                "long-context language models, the command line")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "poppler-utils, poppler-data")
set(CPACK_COMPONENTS_ALL runtime documents development tools)
if(TIERCEL_CUDA)
  tiercel_package(cuda libtiercel-cuda contrib/libs
                  "long-context language models, the module for GPUs")
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
file(COPY ${PROJECT_SOURCE_DIR}/apps/tiercel.1
     DESTINATION ${CMAKE_CURRENT_BINARY_DIR})
execute_process(COMMAND gzip -9nkf ${CMAKE_CURRENT_BINARY_DIR}/tiercel.1)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tiercel.1.gz
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
include(CPack)

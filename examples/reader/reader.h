/* The parts of the reader. */
#ifndef READER_H_
#define READER_H_

#include <gtk/gtk.h>
#include <tiercel.h>

/* reading.c: a book, and a session about a chapter of it. Its tasks take their
 * time: they run one after the other, on a thread that is not the main loop's.
 * Close is the last. */
typedef struct Reading Reading;
typedef struct Window Window;
typedef struct Job {
  char* text; /* a path, the number of a chapter, a question */
  GCancellable* stop;
  GString* result; /* of OpenBook names, a line each; of Choose a plan */
  tiercel_error error;
} Job;
typedef tiercel_status (*Task)(Reading* reading, Job* job);
tiercel_status OpenModel(Reading* reading, Job* job);
tiercel_status OpenBook(Reading* reading, Job* job);
tiercel_status Choose(Reading* reading, Job* job); /* 0 is all of the text */
tiercel_status Ask(Reading* reading, Job* job);
tiercel_status Close(Reading* reading, Job* job);
Reading* NewReading(Window* window);
void FreeModel(void); /* that all readings had */

/* window.c: the main loop's side of a reading. Paths may be NULL. Tell does not
 * wait; a share of the work below 0 stands for the next piece of an answer. */
void OpenWindow(GtkApplication* app, const char* model, const char* book);
void Tell(Window* window, double share, const char* text, size_t bytes);

#endif /* READER_H_ */

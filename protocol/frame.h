/* The message format of the local sockets between the Load Monitor, the Executing
 * Client and the shepherds of one workstation.
 *
 * A frame has a fixed size, is sent as one packet of a SOCK_SEQPACKET socket and
 * needs neither allocation nor parsing, because it is on the eviction path
 * (docs/architecture.md, "The owner first"). All integers are in host byte order:
 * a frame never leaves the machine. Instants are nanoseconds of CLOCK_BOOTTIME.
 *
 * Five sockets use it:
 *   MONITOR  monitor.sock, the Load Monitor listens; the client and every shepherd
 *            connect and stay connected. A lost connection, or silence longer than
 *            SUBLET_MONITOR_SILENCE_NS, means that the owner must be assumed back.
 *   SLOT     descriptor 3 of a slot's shepherd, one of a pair: the client sends RUN.
 *   CONTROL  of one attempt: one of a pair, which comes with RUN; and
 *            attempts/<job>.<attempt>/control, where the shepherd listens and a client
 *            connects that was restarted.
 *   OWNER    owner.sock, the Load Monitor listens; everybody at this machine who is
 *            not a job may connect, to say or ask whether jobs may run (`sublet owner`).
 *   AGENT    agent.sock, the Load Monitor listens; the sublet-agent of each desktop
 *            session connects, stays connected, and can only say that its owner is here, or
 *            watches a film.
 * On the first two, each side accepts only peers whose uid (SO_PEERCRED) is root or its
 * own.
 *
 * Plain C, so that the shepherd (C library only) includes it too. */
#ifndef SUBLET_PROTOCOL_FRAME_H_
#define SUBLET_PROTOCOL_FRAME_H_

#include <stdint.h>

#define SUBLET_FRAME_MAGIC 0x314c4253u /* "SBL1" */

/* While any shepherd runs an attempt the monitor sends a frame at least this often ... */
#define SUBLET_MONITOR_BEAT_NS 250000000ll
/* ... and a listener that has received nothing for this long evicts. */
#ifndef SUBLET_MONITOR_SILENCE_NS /* longer with sanitizers: cmake/options.cmake */
#define SUBLET_MONITOR_SILENCE_NS 1000000000ll
#endif
/* A shepherd acknowledges a request within this time; otherwise client and monitor
 * freeze and kill its job themselves. */
#define SUBLET_SHEPHERD_ACK_NS 300000000ll
#define SUBLET_OWNER_SENSE_BYTES 400
/* Of any text of an owner and its answer: 320 users of the pool fit in. */
#define SUBLET_OWNER_RULE_BYTES 24000
#define SUBLET_OWNER_WITHDRAWN 0xffffffffu
/* Where the owner was seen, as text that ends in a NUL. */
#define SUBLET_PLACE_BYTES 32
/* The longest name of a user in SUBLET_OWNER_POOL and its answer. */
#define SUBLET_POOL_USER_BYTES 64
/* The least time between two HERE frames of an agent. */
#define SUBLET_AGENT_PAUSE_NS 250000000ll
/* For how long an agent may say nothing while input goes on. */
#define SUBLET_AGENT_GOES_ON_NS 10000000000ll

enum sublet_frame_kind {
  /* any -> monitor, first frame after connecting; answered with PRESENCE. job and attempt
   * are 0 for the client, which may send it again; so may a shepherd for its next attempt, after
   * ENDED. arg[0]: the sender's pid. */
  SUBLET_FRAME_HELLO = 1,
  /* monitor -> all. state: enum sublet_presence; reason: enum sublet_presence_reason;
   * instant: when the monitor saw the change (or took the sample);
   * AWAY with the reason SETTLING: the owner has gone again, but not for long enough that new jobs
   * may come. arg[0]: the owner's CPU load in 1/1000 core; arg[1]: ms since the last input or
   * -1 if not known; arg[2]: ms until the machine may become idle if nothing is seen
   * of the owner from now on (0 when it is idle, -1 if that cannot be told); arg[3]: the
   * owner's load average over one minute in 1/1000, or -1 if the rule does not use it.
   * Repeated as the heartbeat. */
  SUBLET_FRAME_PRESENCE = 2,
  /* shepherd -> monitor or client: frame `sequence` was received and acted on.
   * state: enum sublet_shepherd_state; SUSPENDED and LINGERING: the job stays although the owner
   * is back. Also agent -> monitor, to PING; state is 0. */
  SUBLET_FRAME_ACK = 3,
  /* monitor -> client, after a PRESENCE by which jobs leave: where the owner was seen. instant: of
   * that PRESENCE; arg: SUBLET_PLACE_BYTES of text, empty if it cannot be told. */
  SUBLET_FRAME_CAUSE = 4,

  /* client -> shepherd */
  /* The lease is valid until `instant`. A frozen attempt resumes. */
  SUBLET_FRAME_LEASE = 16,
  /* Save and leave. reason: enum sublet_leave_reason; arg[0]: save deadline in ms
   * (0: the deadline of the attempt's record); arg[1]: if the owner is back, enum
   * sublet_presence_reason. */
  SUBLET_FRAME_VACATE = 17,
  /* Kill at once, nothing is saved. reason: enum sublet_leave_reason. */
  SUBLET_FRAME_KILL = 18,
  /* Answer with STATUS; sequence is echoed. Also the client's liveness test. arg[0]: 1 if the
   * client also takes a MESSAGE, which is sent before. */
  SUBLET_FRAME_QUERY = 20,
  /* On SLOT: run this attempt, whose order is in its folder. With it comes a descriptor, the
   * shepherd's end of CONTROL, which it closes when it has done with the attempt.
   * arg[0]: 1: the client has not seen the end of the attempt before. Then this one is not run if
   * that had to leave, or if the client's end of CONTROL is closed when its turn comes. */
  SUBLET_FRAME_RUN = 21,

  /* shepherd -> client */
  /* state: enum sublet_shepherd_state; reason: why it leaves, if it does;
   * arg[0]: CPU microseconds so far; arg[1]: resident bytes now; arg[2]: newest
   * checkpoint generation; arg[3]: progress in parts per million or -1.
   * Sent on QUERY, and unasked when the state or the generation changes; that it runs, 20 ms after
   * the start. */
  SUBLET_FRAME_STATUS = 32,
  /* What the program says of itself (sublet_checkpoint_say), in answer to a QUERY that takes it.
   * The frame is followed, in the same message, by at most SUBLET_MESSAGE_BYTES (sublet_status.h)
   * of text, as the program wrote it. */
  SUBLET_FRAME_MESSAGE = 34,
  /* The exit record is written. Also to the monitor, which sends nothing more until the next
   * HELLO; a HELLO of another attempt on the same connection says so, too. */
  SUBLET_FRAME_ENDED = 33,

  /* owner -> monitor; one for each connection. state: enum sublet_owner_word; arg[0]: of
   * PAUSE, for how many ms, 0: until RESUME; of LEND, see there. */
  SUBLET_FRAME_OWNER = 48,
  /* monitor -> owner, when the word has been obeyed and stored. state and reason: the
   * presence; instant: since when; arg[0]: ms until the machine may become idle, as in
   * PRESENCE; sequence: 0, or the errno with which the word was refused; arg[1]: of a pause, ms
   * that are left, -1: until RESUME, 0: there is none; arg[2]: the uid that asked for it; arg[3]:
   * errno with which it could not be stored, so that a restart forgets it. attempt: for how many
   * seconds the machine is lent, 0: without end, or SUBLET_OWNER_WITHDRAWN. job: number of
   * attempts here, each named by one more frame. After it the monitor hangs up. */
  SUBLET_FRAME_OWNER_STATUS = 49,
  /* monitor -> owner: job and attempt. arg[0]: the CPU time that it has used, in ms; arg[1]: bytes
   * of memory, arg[2]: processes that it uses now; arg[3]: bytes that it has sent and received;
   * -1: not known. */
  SUBLET_FRAME_OWNER_ATTEMPT = 50,
  /* monitor -> owner, in answer to STATUS: what one sense sees. state: 1 if it speaks against
   * jobs, else 0. The frame is followed, in the same message, by at most
   * SUBLET_OWNER_SENSE_BYTES of text: its name, a line feed, what it sees. */
  SUBLET_FRAME_OWNER_SENSE = 51,
  /* monitor -> owner, in answer to RULES: one pair. state: 1 if it is the administrator's. Text:
   * as in RULES. */
  SUBLET_FRAME_OWNER_RULE = 52,
  /* monitor -> owner: why the word was refused, as text. */
  SUBLET_FRAME_OWNER_COMPLAINT = 53,
  /* monitor -> client, in answer to POOL. Text: a line for each user, "ask NAME": a rule here
   * counts while he is logged in anywhere; "here NAME": of those that POOL asked for, he is logged
   * in here; "unknown": it is not known yet who is. */
  SUBLET_FRAME_OWNER_LOGINS = 54,

  /* agent -> monitor, the first frame: every key, pointer and touch of a desktop is seen from
   * now on. state: enum sublet_desktop; arg[0]: the pid of the X server or compositor, 0: not
   * known; arg[1]: of X11 on this machine, the number of the display + 1, 0: not known. A monitor
   * that does not accept the agent hangs up. */
  SUBLET_FRAME_AGENT = 64,
  /* agent -> monitor: there was input. instant: when the agent knew. At once after silence, and at
   * most every SUBLET_AGENT_PAUSE_NS. state: 1: it goes on until the next such frame, which comes
   * within SUBLET_AGENT_GOES_ON_NS. */
  SUBLET_FRAME_HERE = 65,
  /* monitor -> agent: answer with ACK, when the desktop has answered too. */
  SUBLET_FRAME_PING = 66,
  /* agent -> monitor: state: 1: from now on a full-screen program is in front, which may be a
   * film; 0, as at first: none is. At most once a second. */
  SUBLET_FRAME_FULL_SCREEN = 67
};

/* How the agent sees input. */
enum sublet_desktop {
  SUBLET_DESKTOP_X11 = 1,         /* the SYNC extension's counter IDLETIME */
  SUBLET_DESKTOP_WAYLAND_EXT = 2, /* ext-idle-notify-v1 */
  SUBLET_DESKTOP_WAYLAND_KDE = 3, /* org_kde_kwin_idle */
  SUBLET_DESKTOP_MUTTER = 4       /* org.gnome.Mutter.IdleMonitor on D-Bus */
};

enum sublet_owner_word {
  SUBLET_OWNER_STATUS = 1, /* change nothing */
  SUBLET_OWNER_PAUSE = 2,  /* the owner is back: no jobs until further notice */
  SUBLET_OWNER_RESUME = 3, /* the monitor judges by itself again */
  /* With text after the frame, in the same message: set the pair of one scope (SCOPE, a line feed,
   * idle_when, a line feed, evict_when), by the owners only. SCOPE: empty for always, "USER": while
   * he is logged in here, "USER anywhere": or anywhere in the pool. Without: change nothing. */
  SUBLET_OWNER_RULES = 4,
  SUBLET_OWNER_RECLAIM = 5, /* the machine is withdrawn: no jobs until LEND */
  SUBLET_OWNER_LEND = 6,    /* by the owners only; arg[0]: for how many ms, 0: without end */
  /* By the client only, with text: a line for each user, "NAME 1": he is logged in somewhere in the
   * pool; "NAME 0": nowhere; "NAME ?": another machine asks whether he is here. It counts for a
   * minute. */
  SUBLET_OWNER_POOL = 7
};

enum sublet_presence {
  SUBLET_PRESENCE_UNKNOWN = 0, /* treated as ACTIVE */
  SUBLET_PRESENCE_ACTIVE = 1,  /* the owner is present: no jobs */
  SUBLET_PRESENCE_AWAY = 2,    /* the machine is idle: jobs may run */
  SUBLET_PRESENCE_BURDENED = 3 /* as ACTIVE, and jobs that linger slow the owner down */
};

enum sublet_presence_reason {
  SUBLET_PRESENCE_NONE = 0,
  SUBLET_PRESENCE_CPU = 1,      /* the owner's CPU use passed the threshold */
  SUBLET_PRESENCE_LOAD = 2,     /* the owner's load average passed the threshold */
  SUBLET_PRESENCE_INPUT = 3,    /* keyboard, mouse or terminal */
  SUBLET_PRESENCE_SETTLING = 4, /* quiet, but not yet for long enough */
  SUBLET_PRESENCE_SCRIPT = 5,   /* decided by a scripted source */
  SUBLET_PRESENCE_BLIND = 6,    /* a source failed: the owner is assumed present */
  SUBLET_PRESENCE_QUIET = 7,    /* quiet for long enough */
  SUBLET_PRESENCE_PAUSED = 8,   /* the owner's own word: not now */
  SUBLET_PRESENCE_UNSEEN = 9,   /* a graphical session whose input nothing shows */
  SUBLET_PRESENCE_SLEEP = 10,   /* the machine is about to sleep */
  SUBLET_PRESENCE_MEDIA = 11,   /* sound, an open camera, a program that keeps the screen on */
  SUBLET_PRESENCE_RULE = 12,    /* a rule of the owner or the administrator: no jobs */
  SUBLET_PRESENCE_WITHHELD = 13 /* such a rule: no more jobs */
};

enum sublet_shepherd_state {
  SUBLET_SHEPHERD_STARTING = 1,
  SUBLET_SHEPHERD_RUNNING = 2,
  SUBLET_SHEPHERD_SAVING = 3, /* asked to save and leave */
  SUBLET_SHEPHERD_FROZEN = 4, /* stopped, uses no CPU: lease expired or being killed */
  SUBLET_SHEPHERD_ENDED = 5,
  SUBLET_SHEPHERD_SUSPENDED = 6, /* frozen while the owner is here; it may go on */
  SUBLET_SHEPHERD_LINGERING = 7  /* running while the owner is here */
};

enum sublet_leave_reason {
  SUBLET_LEAVE_NONE = 0,
  SUBLET_LEAVE_OWNER = 1,         /* the owner came back */
  SUBLET_LEAVE_BLIND = 2,         /* the monitor died or fell silent */
  SUBLET_LEAVE_LEASE = 3,         /* the lease ran out */
  SUBLET_LEAVE_PREEMPT = 4,       /* another job's turn */
  SUBLET_LEAVE_REMOVED = 5,       /* the job was removed */
  SUBLET_LEAVE_DRAIN = 6,         /* the client is shutting down */
  SUBLET_LEAVE_LIMIT = 7,         /* the job exceeded one of its limits */
  SUBLET_LEAVE_REPLACED = 8,      /* the server has given the job to another attempt */
  SUBLET_LEAVE_HELD = 9,          /* the job was held */
  SUBLET_LEAVE_ADMINISTRATOR = 10 /* an administrator wants the machine empty */
};

struct sublet_frame {
  uint32_t magic;
  uint16_t kind;
  uint16_t reserved; /* 0 */
  uint64_t job;
  uint32_t attempt;
  uint32_t sequence; /* per sender; ACK and STATUS echo that of the frame they answer */
  uint32_t state;
  uint32_t reason;
  int64_t instant;
  int64_t arg[4];
};

#ifdef __cplusplus
static_assert(sizeof(sublet_frame) == 72, "one size for all");
#else
_Static_assert(sizeof(struct sublet_frame) == 72, "one size for all");
#endif

#endif /* SUBLET_PROTOCOL_FRAME_H_ */

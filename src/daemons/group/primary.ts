import type { ServiceName } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { createCrashPolicy } from '../../kit/process/crash-policy.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { LineOutput } from '../../kit/telemetry/output.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { STOP_DEADLINES } from '../../kit/time/stop-deadlines.ts';
import type { Peers } from '../peers.ts';
import type { DaemonStart } from '../process-protocol.ts';
import { type Answer, createLink } from './link.ts';
import type { Member, PrimaryProcess } from './process-group.ts';
import { type SiblingProgram, type SiblingProgramOptions, startSiblingProgram } from './sibling-program.ts';

const NEWS_TIMEOUT_MS = seconds(1);

export interface PrimaryOptions {
  name: ServiceName;
  size: number;
  /** Start parameters of a sibling, except its address. */
  describe: () => Omit<DaemonStart, 'listen' | 'sibling'>;
  peers: Peers;
  output: LineOutput;
  logger: Logger;
  clock: Clock;
  random: Random;
  /** Called when a sibling is in a crash loop: the service must exit with this error. */
  onGivenUp: (error: PlatformError) => void;
  /** Called with the sandbox of each plugin process that a sibling starts. */
  onSandbox?: SiblingProgramOptions['onSandbox'];
}

/** The primary, with methods for the service's start and shutdown. */
export interface Primary extends PrimaryProcess {
  /** Starts the siblings without waiting for them, and restarts each until it is in a crash loop. */
  start(listen: { host: string; port: number }): void;
  /** Makes siblings drain. Their requests are still answered until they have ended. */
  stop(): void;
  /** Resolves when all siblings have ended; kills them a second after the service's `drainMs`. */
  ended(): Promise<void>;
}

/** Manages the processes that share one port. Siblings never outlive this process. */
export function createPrimary(options: PrimaryOptions): Primary {
  const { size, peers } = options;
  const { drainMs } = options.describe().config[options.name];
  const answers = new Map<string, Answer<Member>>();
  const news = new Map<string, () => void | Promise<void>>();
  const lost: Array<(member: Member) => void> = [];
  const up = new Map<Member, SiblingProgram>();
  const slots: Slot[] = [];

  async function tellAll(topic: string, but?: Member): Promise<void> {
    const others = [...up.keys()].filter((member) => member !== but);
    await Promise.all(others.map((member) => inTime(member.call('news', topic))));
  }
  answers.set('announce', async (topic, from) => {
    await Promise.all([news.get(topic as string)?.(), tellAll(topic as string, from)]);
  });
  peers.onSet((urls) => {
    for (const program of up.values()) program.sendPeers(urls);
  });

  function startSlot(place: number, listen: { host: string; port: number }): Slot {
    return superviseSlot({
      ...options,
      place,
      listen,
      answers,
      onUp: (member, program) => void up.set(member, program),
      onDown(member) {
        up.delete(member);
        for (const listener of lost) listener(member);
      },
    });
  }

  return {
    role: 'primary',
    size,
    members: () => [...up.keys()],
    answer: (topic, answer) => void answers.set(topic, answer),
    onLost: (listener) => void lost.push(listener),
    announce: (topic) => tellAll(topic),
    onNews: (topic, learn) => void news.set(topic, learn),
    start(listen) {
      for (let place = 2; place <= size; place++) slots.push(startSlot(place, listen));
    },
    stop() {
      for (const place of slots) place.stop();
    },
    async ended() {
      const late = setTimeout(() => {
        for (const program of up.values()) program.kill();
      }, drainMs + STOP_DEADLINES.siblingKillMs);
      await Promise.all(slots.map((place) => place.ended()));
      clearTimeout(late);
    },
  };
}

function inTime(told: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, NEWS_TIMEOUT_MS);
  told.then(
    () => resolve(),
    () => resolve(),
  );
  return promise.finally(() => clearTimeout(timer));
}

/** One numbered slot of the group and its successive processes. */
interface Slot {
  stop(): void;
  ended(): Promise<void>;
}

interface SlotOptions extends PrimaryOptions {
  place: number;
  listen: { host: string; port: number };
  answers: ReadonlyMap<string, Answer<Member>>;
  onUp: (member: Member, program: SiblingProgram) => void;
  onDown: (member: Member) => void;
}

function superviseSlot(options: SlotOptions): Slot {
  const { name, place, logger, clock, onUp, onDown } = options;
  const crashes = createCrashPolicy(options);
  let current: SiblingProgram | undefined;
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let gone = Promise.resolve();

  function launch(): void {
    let readyAt: number | undefined;
    const program = startSiblingProgram({
      ...options,
      start: { ...options.describe(), listen: options.listen, sibling: { place } },
      onFrame: (frame, socket) => link.receive(frame, socket),
      onListening() {
        readyAt = clock.monotonic();
        logger.info(`Process ${place} of ${name} is ready`, { meta: { place, pid: program.pid } });
      },
    });
    const member: Member = {
      place,
      pid: program.pid,
      ask: (...args) => link.ask(...args),
      call: (...args) => link.call(...args),
    };
    const link = createLink({ send: program.send, answers: options.answers, from: member });
    current = program;
    onUp(member, program);
    gone = program.ended.then((how) => {
      current = undefined;
      link.close();
      onDown(member);
      if (!stopping) restart(how, readyAt === undefined ? 0 : clock.monotonic() - readyAt);
    });
  }

  function restart(how: string, uptimeMs: number): void {
    const verdict = crashes.crashed(uptimeMs);
    if (verdict.loop) {
      giveUp(options, how, verdict.crashes);
      return;
    }
    const { delayMs } = verdict;
    logger.diagnostic({
      domain: 'daemon',
      event: 'daemon.process_ended',
      level: 'error',
      reasonCode: 'PROCESS_ENDED',
      message: `Process ${place} of ${name} ended unexpectedly (${how}); restarting it in ${delayMs}ms`,
      outcome: 'degraded',
      evidence: { place, how, retryInMs: delayMs },
    });
    timer = setTimeout(launch, delayMs);
  }

  launch();
  return {
    stop() {
      stopping = true;
      clearTimeout(timer);
      current?.stop();
    },
    ended: () => gone,
  };
}

/** @spec docs/decisions/0037 */
function giveUp({ name, place, size, logger, onGivenUp }: SlotOptions, how: string, crashes: number): void {
  const error = new PlatformError(
    'INTERNAL_ERROR',
    `Process ${place} of ${size} of ${name} ended ${crashes} times within a minute, most recently with ${how}; see the log for the cause. To run without siblings, set ${name}.processes to 1.`,
    { details: { place, how, crashes } },
  );
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.crash_loop',
    level: 'fatal',
    reasonCode: 'CRASH_LOOP',
    message: `${name} exits: ${error.message}`,
    outcome: 'failed',
    evidence: error.details,
  });
  onGivenUp(error);
}

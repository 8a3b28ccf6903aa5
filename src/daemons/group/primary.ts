import type { ServiceName } from '../../contracts/index.ts';
import { seconds } from '../../kit/duration.ts';
import type { Logger } from '../../kit/logger.ts';
import type { LineOutput } from '../../kit/output.ts';
import type { Random } from '../../kit/random.ts';
import type { Peers } from '../peers.ts';
import type { DaemonStart } from '../process-protocol.ts';
import { type Answer, createLink } from './link.ts';
import type { Member, PrimaryProcess } from './process-group.ts';
import { type SiblingProgram, startSiblingProgram } from './sibling-program.ts';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = seconds(10);
/** One that lived so long had no fault of its start. */
const STABLE_MS = seconds(30);
/** A little less than this process has itself, so that it can still close its store. */
const STOP_DEADLINE_MS = seconds(9);
const NEWS_PATIENCE_MS = seconds(1);

export interface PrimaryOptions {
  name: ServiceName;
  size: number;
  /** What a sibling is told, but for where it listens. */
  describe: () => Omit<DaemonStart, 'listen' | 'sibling'>;
  peers: Peers;
  output: LineOutput;
  logger: Logger;
  random: Random;
}

/** The primary with what only its daemon's own start and end use. */
export interface Primary extends PrimaryProcess {
  /** Starts the siblings, each again whenever it ends. Does not wait for them. */
  start(listen: { host: string; port: number }): void;
  /** Tells them to drain. They are still answered until they have ended. */
  stop(): void;
  /** Resolves when they have; by force after nine seconds. */
  ended(): Promise<void>;
}

/** Holds together the processes that share one port. The siblings never outlive this process. */
export function createPrimary(options: PrimaryOptions): Primary {
  const { size, peers } = options;
  const answers = new Map<string, Answer<Member>>();
  const news = new Map<string, () => void | Promise<void>>();
  const lost: Array<(member: Member) => void> = [];
  const up = new Map<Member, SiblingProgram>();
  const places: Place[] = [];

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

  function keepUp(place: number, listen: { host: string; port: number }): Place {
    return keepPlace({
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
      for (let place = 2; place <= size; place++) places.push(keepUp(place, listen));
    },
    stop() {
      for (const place of places) place.stop();
    },
    async ended() {
      const late = setTimeout(() => {
        for (const program of up.values()) program.kill();
      }, STOP_DEADLINE_MS);
      await Promise.all(places.map((place) => place.ended()));
      clearTimeout(late);
    },
  };
}

function inTime(told: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, NEWS_PATIENCE_MS);
  told.then(
    () => resolve(),
    () => resolve(),
  );
  return promise.finally(() => clearTimeout(timer));
}

/** One place in the group and the processes that hold it, one after another. */
interface Place {
  stop(): void;
  ended(): Promise<void>;
}

interface PlaceOptions extends PrimaryOptions {
  place: number;
  listen: { host: string; port: number };
  answers: ReadonlyMap<string, Answer<Member>>;
  onUp: (member: Member, program: SiblingProgram) => void;
  onDown: (member: Member) => void;
}

function keepPlace(options: PlaceOptions): Place {
  const { name, place, logger, random, onUp, onDown } = options;
  let current: SiblingProgram | undefined;
  let stopping = false;
  let delayMs = FIRST_DELAY_MS;
  let timer: NodeJS.Timeout | undefined;
  let gone = Promise.resolve();

  function launch(): void {
    const startedAt = performance.now();
    const program = startSiblingProgram({
      ...options,
      start: { ...options.describe(), listen: options.listen, sibling: { place } },
      onFrame: (frame, socket) => link.receive(frame, socket),
      onListening: () =>
        logger.info(`Process ${place} of ${name} is ready`, { meta: { place, pid: program.pid } }),
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
      if (!stopping) comeBack(how, performance.now() - startedAt);
    });
  }

  function comeBack(how: string, livedMs: number): void {
    if (livedMs >= STABLE_MS) delayMs = FIRST_DELAY_MS;
    const waitMs = Math.round(delayMs * (0.75 + random.fraction() / 2));
    delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 2);
    logger.diagnostic({
      domain: 'daemon',
      event: 'daemon.process_ended',
      level: 'error',
      reasonCode: 'PROCESS_ENDED',
      message: `Process ${place} of ${name} ended unexpectedly (${how}); it starts again in ${waitMs}ms`,
      outcome: 'degraded',
      evidence: { place, how, retryInMs: waitMs },
    });
    timer = setTimeout(launch, waitMs);
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

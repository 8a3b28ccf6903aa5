import { seconds } from '../../kit/time/duration.ts';
import { STOP_DEADLINES } from '../../kit/time/stop-deadlines.ts';
import type { Answer } from './link.ts';
import type { PrimaryOptions } from './primary-options.ts';
import type { Member, PrimaryProcess } from './process-group.ts';
import type { SiblingProgram } from './sibling-program.ts';
import { SiblingSlot } from './sibling-slot.ts';

const NEWS_TIMEOUT_MS = seconds(1);

/** The primary of the processes that share one port. Siblings never outlive this process. */
export class Primary implements PrimaryProcess {
  readonly role = 'primary';
  readonly size: number;
  readonly #options: PrimaryOptions;
  readonly #drainMs: number;
  readonly #answers = new Map<string, Answer<Member>>();
  readonly #news = new Map<string, () => void | Promise<void>>();
  readonly #lost: Array<(member: Member) => void> = [];
  readonly #up = new Map<Member, SiblingProgram>();
  readonly #slots: SiblingSlot[] = [];

  constructor(options: PrimaryOptions) {
    this.#options = options;
    this.size = options.size;
    this.#drainMs = options.describe().config[options.name].drainMs;
    this.#answers.set('announce', async (topic, from) => {
      await Promise.all([this.#news.get(topic as string)?.(), this.#broadcast(topic as string, from)]);
    });
    options.peers.onSet((urls) => {
      for (const program of this.#up.values()) program.sendPeers(urls);
    });
  }

  members(): readonly Member[] {
    return [...this.#up.keys()];
  }

  answer(topic: string, answer: Answer<Member>): void {
    this.#answers.set(topic, answer);
  }

  onLost(listener: (member: Member) => void): void {
    this.#lost.push(listener);
  }

  announce(topic: string): Promise<void> {
    return this.#broadcast(topic);
  }

  onNews(topic: string, learn: () => void | Promise<void>): void {
    this.#news.set(topic, learn);
  }

  /**
   * Starts the siblings and returns at once. Restarts each sibling that ends, unless the sibling is in a crash loop.
   */
  start(listen: { host: string; port: number }): void {
    for (let place = 2; place <= this.size; place++) this.#slots.push(this.#startSlot(place, listen));
  }

  /** Makes siblings drain. The primary still answers requests of siblings until the siblings have ended. */
  stop(): void {
    for (const slot of this.#slots) slot.stop();
  }

  /** Resolves when all siblings have ended. Kills the remaining siblings one second after the service's `drainMs`. */
  async ended(): Promise<void> {
    const late = setTimeout(() => {
      for (const program of this.#up.values()) program.kill();
    }, this.#drainMs + STOP_DEADLINES.siblingKillMs);
    await Promise.all(this.#slots.map((slot) => slot.ended()));
    clearTimeout(late);
  }

  #startSlot(place: number, listen: { host: string; port: number }): SiblingSlot {
    return new SiblingSlot({
      ...this.#options,
      place,
      listen,
      answers: this.#answers,
      onUp: (member, program) => void this.#up.set(member, program),
      onDown: (member) => {
        this.#up.delete(member);
        for (const listener of this.#lost) listener(member);
      },
    });
  }

  async #broadcast(topic: string, except?: Member): Promise<void> {
    const others = [...this.#up.keys()].filter((member) => member !== except);
    await Promise.all(others.map((member) => withinTimeout(member.call('news', topic))));
  }
}

/** Resolves when the call settles, or after `NEWS_TIMEOUT_MS`. */
function withinTimeout(call: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, NEWS_TIMEOUT_MS);
  call.then(
    () => resolve(),
    () => resolve(),
  );
  return promise.finally(() => clearTimeout(timer));
}

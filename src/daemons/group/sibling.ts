import type { Socket } from 'node:net';
import type { Frame } from './link.ts';
import { type Answer, createLink } from './link.ts';
import type { SiblingProcess } from './process-group.ts';

/** The channel from a sibling to the primary. */
export interface PrimaryChannel {
  place: number;
  /** Returns false when the primary has ended. */
  send(frame: Frame, socket?: Socket): boolean;
  onFrame(listener: (frame: Frame) => void): void;
}

/** Creates the sibling role of this process. */
export function createSibling({ place, send, onFrame }: PrimaryChannel): SiblingProcess {
  const answers = new Map<string, Answer<undefined>>();
  const link = createLink({ send, answers, from: undefined });
  const news = new Map<string, () => void | Promise<void>>();
  answers.set('news', (topic) => news.get(topic as string)?.());
  onFrame(link.receive);
  return {
    role: 'sibling',
    place,
    primary: link,
    answer: (topic, answer) => void answers.set(topic, answer),
    async announce(topic) {
      await link.call('announce', topic).catch(() => {});
    },
    onNews: (topic, learn) => void news.set(topic, learn),
  };
}

import { HOST_CLOSE, HOST_SOCKET, type PartFrame } from '../../../contracts/index.ts';

/** What a part brought: nothing yet, a whole frame's text, or what is wrong with it and how the socket is closed. */
export type Joined =
  | { kind: 'more' }
  | { kind: 'whole'; text: string }
  | { kind: 'fault'; code: number; why: string };

export interface FrameJoiner {
  /** After a fault the joiner must not be used any more. */
  take(part: PartFrame): Joined;
  /** Forgets the frame of that number, if it is the one that is open. */
  drop(frame: number): void;
}

/** Puts frames together from their parts, one at a time and at most `maxBytes` large: the sender is not trusted. */
export function createFrameJoiner(maxBytes: number): FrameJoiner {
  let open: { frame: number; texts: string[]; bytes: number } | undefined;

  function take({ frame, index, last, text }: PartFrame): Joined {
    const isNext = open ? frame === open.frame && index === open.texts.length : index === 0;
    if (!isNext) return refused(`part ${index} of frame ${frame} is out of order`);
    // Else a frame of a megabyte could be a million messages.
    if (!last && text.length !== HOST_SOCKET.partChars)
      return refused('a part that is not the last is short');
    open ??= { frame, texts: [], bytes: 0 };
    open.texts.push(text);
    open.bytes += Buffer.byteLength(text);
    if (open.bytes > maxBytes) {
      const why = `a frame is larger than ${maxBytes} bytes`;
      return { kind: 'fault', code: HOST_CLOSE.tooLarge, why };
    }
    if (!last) return { kind: 'more' };
    const whole = open.texts.join('');
    open = undefined;
    return { kind: 'whole', text: whole };
  }

  return {
    take,
    drop(frame) {
      if (open?.frame === frame) open = undefined;
    },
  };
}

function refused(why: string): Joined {
  return { kind: 'fault', code: HOST_CLOSE.protocol, why };
}

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PIECE = 'x'.repeat(64 * 1024);

/**
 * Sends `head` and a third of a body, and the rest once an answer has begun: as a client does that does not look up while
 * it sends. What came back, and whether the connection was cut under it.
 */
export function answerWhileSending(
  target: { url: string },
  head: string,
): Promise<{ answer: string; failed: string | undefined }> {
  const { port, hostname } = new URL(target.url);
  return new Promise((resolve) => {
    let answer = '';
    let failed: string | undefined;
    const length = `content-length: ${3 * PIECE.length}`;
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () =>
      socket.write(`${head}host: localhost\r\n${length}\r\n\r\n${PIECE}`),
    );
    const sendRest = async (): Promise<void> => {
      // By then a server that ends the connection at once has closed it: the first write is met by a reset, the second fails.
      await sleep(50);
      socket.write(PIECE);
      await sleep(50);
      socket.end(PIECE);
    };
    socket.setEncoding('utf8').on('data', (text: string) => {
      if (answer === '') void sendRest();
      answer += text;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      failed = error.code;
    });
    socket.on('close', () => resolve({ answer, failed }));
  });
}

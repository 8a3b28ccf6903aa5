import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { atEnd } from './at-end.ts';

export interface Mail {
  to: string[];
  text: string;
  /** Whether the connection was encrypted. */
  secure: boolean;
}

export interface MailServer {
  port: number;
  mails: Mail[];
}

export const MAIL_PASSWORD = 'a-password';

/** A real SMTP server on loopback that knows the user `svc`. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'svc' && password === MAIL_PASSWORD
        ? done(null, { user: 'svc' })
        : done(new Error(`Refused ${password}`)),
    onData(stream, session, done) {
      let text = '';
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        mails.push({ to, text, secure: session.secure });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as { port: number }).port, mails };
}

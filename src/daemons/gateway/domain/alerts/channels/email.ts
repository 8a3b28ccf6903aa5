import { once } from 'node:events';
import { connect, isIP } from 'node:net';
import type { AlertChannelSettings } from '../../../../../contracts/index.ts';
import type { Notification } from '../notification.ts';
import { type ChannelCall, SENT, type SendResult } from './channel-sender.ts';
import { countText, footer, linkOf, plain, restOf, stillFiring, titleOf } from './notification-text.ts';

type Settings = Extract<AlertChannelSettings, { type: 'email' }>;

export interface MailTools {
  /** Returns an address of the mail server. Throws PERMISSION_DENIED for a refused one. */
  resolve(host: string, mayBePrivate: boolean): Promise<string>;
  timeoutMs: number;
}

const MAX_SUBJECT_CHARS = 200;
const MAX_LINE_CHARS = 500;

export function mailText(notification: Notification, publicUrl: string): string {
  const listed = notification.alerts.map((alert) =>
    [
      `* ${plain(alert.title, MAX_LINE_CHARS)}${countText(alert)}`,
      `  ${plain(alert.message, MAX_LINE_CHARS)}`,
      `  ${linkOf(publicUrl, alert)}`,
    ].join('\n'),
  );
  const notes = [stillFiring(notification), restOf(notification)].filter((note) => note !== undefined);
  return `${[...listed, ...notes, `-- \n${footer(notification)}\n${publicUrl}/studio/alerts`].join('\n\n')}\n`;
}

/** Sends a notification by SMTP. nodemailer is loaded with the first mail, because most platforms send none. */
export async function sendEmail(call: ChannelCall<Settings>, tools: MailTools): Promise<SendResult> {
  const { settings, secret, notification, publicUrl, now } = call;
  const { port, from, to } = settings;
  const address = await tools.resolve(settings.host, call.mayBePrivate);
  const { createTransport } = await import('nodemailer');
  // The socket is opened here and not by nodemailer, so that it is closed after a time-out too.
  const socket = connect({ host: address, port }).on('error', () => {});
  const connected = once(socket, 'connect');
  connected.catch(() => {});
  const transport = createTransport({
    ...transportSettings(settings, { address, secret, timeoutMs: tools.timeoutMs }),
    getSocket: (_options, opened) =>
      void connected.then(
        () => opened(null, { connection: socket }),
        (error) => opened(error, {}),
      ),
  });
  const domain = from.slice(from.lastIndexOf('@') + 1);
  const limitMs = 2 * tools.timeoutMs;
  const cancel = AbortSignal.timeout(limitMs);
  // The time-outs of the socket never end a server that keeps sending data.
  const late = new Promise<never>((_, reject) =>
    cancel.addEventListener('abort', () => reject(new Error(lateText(settings, limitMs)))),
  );
  late.catch(() => {});
  try {
    const sent = transport.sendMail({
      ...{ from: { name: 'svc alerts', address: from }, to },
      subject: plain(titleOf(notification), MAX_SUBJECT_CHARS),
      text: mailText(notification, publicUrl),
      messageId: `<${notification.id}@${domain}>`,
      // Mail clients show notifications of one incident as a thread.
      ...{
        inReplyTo: `<${notification.incident}@${domain}>`,
        references: `<${notification.incident}@${domain}>`,
      },
      ...{
        date: new Date(now),
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Svc-Alert-Rule': plain(notification.rule, 64) },
      },
    });
    sent.catch(() => {});
    const { rejected, response } = await Promise.race([sent, late]);
    const status = statusOf(response);
    if (rejected.length === 0) return SENT(status);
    return {
      ok: false,
      status,
      error: `The mail server refused ${rejected.join(', ')}.`,
      isFinal: true,
    };
  } catch (error) {
    const { responseCode } = error as { responseCode?: number };
    if (responseCode === undefined) throw error;
    return { ok: false, status: responseCode, error: (error as Error).message };
  } finally {
    transport.close();
    socket.destroy();
  }
}

function transportSettings(
  { host, port, security, ca, user }: Settings,
  { address, secret, timeoutMs }: { address: string; secret: string | undefined; timeoutMs: number },
) {
  return {
    ...{ host: address, port, secure: security === 'tls' },
    ...{ requireTLS: security === 'starttls', ignoreTLS: security === 'none' },
    ...(user === null ? {} : { auth: { user, pass: secret ?? '' } }),
    // TLS allows no address as server name. The certificate is then compared with the address.
    tls: {
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca ? { ca } : {}),
      minVersion: 'TLSv1.2' as const,
    },
    ...{ greetingTimeout: timeoutMs, socketTimeout: timeoutMs },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  };
}

const lateText = ({ host, port }: Settings, limitMs: number): string =>
  `The mail server ${host}:${port} did not take the message within ${limitMs / 1000} s. Check the host, the port and the load of the server.`;

const statusOf = (response: string | undefined): number | null => {
  const found = /^\d{3}/.exec(response ?? '');
  return found ? Number(found[0]) : null;
};

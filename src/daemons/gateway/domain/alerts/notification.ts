import type {
  AlertAttempt,
  AlertKind,
  AlertNotification,
  AlertObject,
  AlertSeverity,
  AlertState,
} from '../../../../contracts/index.ts';

export interface ListedAlert {
  id: string;
  title: string;
  message: string;
  /** Path of the object in the studio. */
  path: string | null;
  count: number;
  firstAt: number;
  state: AlertState;
  object: Pick<AlertObject, 'type' | 'id' | 'namespaceId'>;
}

/** Content of a notification, as it is stored. Retries send the same content. */
export interface NotificationBody {
  reason: AlertNotification['reason'];
  rule: string;
  kind: AlertKind;
  severity: AlertSeverity;
  incident: string;
  /** Alerts of the group that fire. */
  firing: number;
  uncounted: number;
  /** Alerts of this notification. */
  total: number;
  alertIds: string[];
  /** The first alerts. */
  alerts: ListedAlert[];
  attempts: AlertAttempt[];
}

export interface Notification extends NotificationBody {
  /** Stays the same for all attempts, so that receivers can drop duplicates. */
  id: string;
  createdAt: number;
  isTest?: boolean;
}

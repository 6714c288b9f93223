/** Where short messages appear (say). */
import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

export default function Messages() {
  return <Notifications position="bottom-right" />;
}

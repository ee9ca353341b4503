package pares;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import quickfix.*;
import quickfix.field.*;
import quickfix.fix44.NewOrderSingle;

/**
 * A member that enters orders by QuickFIX/J and says what it is told, a line each. It knows nothing of the exchange but
 * the addresses of its gateways: who is dead, where to go on and what to send again is the engine's affair.
 *
 * <pre>
 *   Member STORE SENDER SYMBOL HOST:PORT HOST:PORT ...     commands come as lines:
 *   order NAME SIDE QUANTITY PRICE      enters one
 *   end                                 logs out and ends
 * </pre>
 */
public final class Member implements Application {
    private final CountDownLatch loggedOn = new CountDownLatch(1);

    public static void main(String[] args) throws Exception {
        SessionID id = new SessionID("FIX.4.4", args[1], "PARES");
        SessionSettings settings = settings(id, args);
        Member member = new Member();
        SocketInitiator initiator = new SocketInitiator(
            member, new FileStoreFactory(settings), settings, new SilentLogFactory(), new DefaultMessageFactory());
        initiator.start();
        if (!member.loggedOn.await(30, TimeUnit.SECONDS)) {
            say("nobody answers");
            System.exit(1);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("end"); line = commands.readLine()) {
            String[] words = line.split(" ");
            NewOrderSingle order = new NewOrderSingle(
                new ClOrdID(words[1]), new Side(words[2].charAt(0)), new TransactTime(), new OrdType(OrdType.LIMIT));
            order.set(new Symbol(args[2]));
            order.set(new OrderQty(Double.parseDouble(words[3])));
            order.setString(Price.FIELD, words[4]);
            Session.sendToTarget(order, id);
        }
        initiator.stop();
    }

    private static SessionSettings settings(SessionID id, String[] args) {
        SessionSettings settings = new SessionSettings();
        settings.setString("ConnectionType", "initiator");
        settings.setString("FileStorePath", args[0]);
        settings.setString("StartTime", "00:00:00");
        settings.setString("EndTime", "00:00:00");
        settings.setString("HeartBtInt", "5");
        settings.setString("ReconnectInterval", "1");
        settings.setString("UseDataDictionary", "Y");
        settings.setString("DataDictionary", "FIX44.xml");
        for (int number = 0; number + 3 < args.length; number++) {
            String[] address = args[number + 3].split(":");
            String suffix = number == 0 ? "" : Integer.toString(number);
            settings.setString(id, "SocketConnectHost" + suffix, address[0]);
            settings.setString(id, "SocketConnectPort" + suffix, address[1]);
        }
        settings.setString(id, "BeginString", id.getBeginString());
        settings.setString(id, "SenderCompID", id.getSenderCompID());
        settings.setString(id, "TargetCompID", id.getTargetCompID());
        return settings;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String field(Message message, int tag) throws FieldNotFound {
        FieldMap where = message.isSetField(tag) ? message : message.getHeader();
        return where.isSetField(tag) ? where.getString(tag) : "-";
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public void onLogon(SessionID id) {
        say("on");
        loggedOn.countDown();
    }

    @Override
    public void onLogout(SessionID id) {
        say("off");
    }

    @Override
    public void toAdmin(Message message, SessionID id) {
        say("sends " + message.toString().replace('\u0001', '|'));
    }

    @Override
    public void fromAdmin(Message message, SessionID id) {
        say("gets " + message.toString().replace('\u0001', '|'));
    }

    @Override
    public void toApp(Message message, SessionID id) {}

    @Override
    public void fromApp(Message message, SessionID id) throws FieldNotFound {
        say(String.join(" ", "report", field(message, MsgType.FIELD), field(message, ClOrdID.FIELD),
            field(message, ExecType.FIELD), field(message, ExecID.FIELD), field(message, LastQty.FIELD),
            field(message, CumQty.FIELD), field(message, PossResend.FIELD), field(message, PossDupFlag.FIELD),
            field(message, Text.FIELD).replace(' ', '_')));
    }

    /** Says nothing: what matters is on the standard output. */
    private static final class SilentLogFactory implements LogFactory {
        @Override
        public Log create(SessionID id) {
            return new Log() {
                @Override
                public void clear() {}

                @Override
                public void onIncoming(String message) {}

                @Override
                public void onOutgoing(String message) {}

                @Override
                public void onEvent(String text) {}

                @Override
                public void onErrorEvent(String text) {
                    say("error " + text);
                }
            };
        }
    }
}

package pares;

import quickfix.*;
import quickfix.field.MsgType;

/**
 * QuickFIX/J's acceptor, which sends each order back as it came: what a session layer costs alone.
 *
 * <pre>
 *   Echo PORT SESSIONS      serves FIX 4.4 for M1-1 to MSESSIONS-1, which call PARES; says "ready", and runs until it is killed
 * </pre>
 */
public final class Echo implements Application {
    public static void main(String[] args) throws Exception {
        SessionSettings settings = new SessionSettings();
        settings.setString("ConnectionType", "acceptor");
        settings.setString("SocketAcceptAddress", "127.0.0.1");
        settings.setString("SocketAcceptPort", args[0]);
        settings.setString("SocketTcpNoDelay", "Y");
        settings.setString("StartTime", "00:00:00");
        settings.setString("EndTime", "00:00:00");
        settings.setString("UseDataDictionary", "Y");
        settings.setString("DataDictionary", "FIX44.xml");
        for (int number = 1; number <= Integer.parseInt(args[1]); number++) {
            SessionID id = new SessionID("FIX.4.4", "PARES", "M" + number + "-1");
            settings.setString(id, "BeginString", id.getBeginString());
            settings.setString(id, "SenderCompID", id.getSenderCompID());
            settings.setString(id, "TargetCompID", id.getTargetCompID());
        }
        // Neither files nor logs: nobody asks for anything again here.
        SocketAcceptor acceptor =
            new SocketAcceptor(new Echo(), new MemoryStoreFactory(), settings, new SilentLogFactory(), new DefaultMessageFactory());
        acceptor.start();
        System.out.println("ready");
        System.out.flush();
        Thread.currentThread().join();
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public void onLogon(SessionID id) {}

    @Override
    public void onLogout(SessionID id) {}

    @Override
    public void toAdmin(Message message, SessionID id) {}

    @Override
    public void fromAdmin(Message message, SessionID id) {}

    @Override
    public void toApp(Message message, SessionID id) {}

    @Override
    public void fromApp(Message message, SessionID id) throws FieldNotFound {
        Message back = new Message();
        back.getHeader().setString(MsgType.FIELD, message.getHeader().getString(MsgType.FIELD));
        back.setFields(message);
        try {
            Session.sendToTarget(back, id);
        } catch (SessionNotFound error) {
            throw new IllegalStateException(error);
        }
    }

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
                public void onErrorEvent(String text) {}
            };
        }
    }
}
